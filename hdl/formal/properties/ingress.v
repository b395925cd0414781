// Who takes headers and beats takes only what is there: what the proofs of the others assert.
always @(posedge clock) begin
    assume (!header_pop || header_valid);
    assume (!pop || oldest_valid);
end

// What makes it inductive: the queues of beats and of their last-beat flags are as full as each other. `hierconn` makes
// the names those of the modules below.
(* hierconn *) wire [7:0] \beats.count$q ;
(* hierconn *) wire [7:0] \lasts.count$q ;

always @(posedge clock) assert (\beats.count$q == \lasts.count$q );
