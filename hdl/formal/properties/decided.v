// Invariant for the induction: the decisions since the queues had room, and those that are still being made, fit into the
// margin of the queues.

// Names of internal signals. `hierconn` connects them to those of the submodules. The value 31 of `f_since` means that
// `room` has not been set yet.
(* hierconn *) wire [4:0] \decisions.f_since ;
(* hierconn *) wire [4:0] \results.f_since ;
(* hierconn *) wire [1:0] \counter.f_inside ;

always @(posedge clock) begin
    assert (\decisions.f_since == 31 ? \counter.f_inside == 0 : \decisions.f_since + \counter.f_inside <= 3);
    assert (\results.f_since == 31 ? \counter.f_inside == 0 : \results.f_since + \counter.f_inside <= 3);
end
