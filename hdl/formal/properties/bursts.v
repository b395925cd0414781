// Invariant for the induction: the queue of bursts and the queue of their addresses hold the same number of words.

// Names of internal signals. `hierconn` connects them to those of the submodules.
(* hierconn *) wire [7:0] \bursts.count$q ;
(* hierconn *) wire [7:0] \places.count$q ;

always @(posedge clock) assert (\bursts.count$q == \places.count$q );
