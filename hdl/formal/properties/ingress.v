// Headers and beats are taken only if they are available. The proofs of the other modules assert this.
always @(posedge clock) begin
    assume (!header_pop || header_valid);
    assume (!pop || oldest_valid);
end

// Invariant for the induction: the queue of beats and the queue of their last-beat flags hold the same number of words.
// `hierconn` connects the names to those of the submodules.
(* hierconn *) wire [7:0] \beats.count$q ;
(* hierconn *) wire [7:0] \lasts.count$q ;

always @(posedge clock) assert (\beats.count$q == \lasts.count$q );
