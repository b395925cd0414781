// What makes the queues of bursts and of their addresses inductive: they are as full as each other.

// Names of internals. `hierconn` makes them those of the modules below.
(* hierconn *) wire [7:0] \bursts.count$q ;
(* hierconn *) wire [7:0] \places.count$q ;

always @(posedge clock) assert (\bursts.count$q == \places.count$q );
