// The scoreboard never reads an address while its sum is in the adders. A burst waits only if its address is in the
// adders or there is no credit.

// Names of internal signals.
localparam F_LOOP = @COUNT(flying)@;
wire f_go = go;
wire f_blocked = blocked$q;
wire f_waiting = waiting$q;
wire f_waiting_last = waiting_flags$q[1];
wire [F_LOOP-1:0] f_flying = @VECTOR(flying)@;
wire [F_LOOP-1:0] f_same = @VECTOR(same)@;
wire [15*F_LOOP-1:0] f_addresses = @VECTOR(addresses)@;

// Any address, and its state derived from the ports.
(* anyconst *) reg [14:0] f_at;
reg f_busy = 0;
reg f_was_here = 0;
reg f_last = 0;
reg [14:0] f_loaded = 0;
reg [F_LOOP-1:0] f_issues = 0;
reg [4:0] f_waited = 0;
wire f_issue_here = f_go && read_address == f_at;
wire f_write_here = write && write_address == f_at;
always @(posedge clock) begin
    if (f_write_here) begin f_busy <= 0; f_was_here <= 1; end
    if (f_issue_here) f_busy <= 1;
    if (load) begin f_last <= flags[1]; f_loaded <= address; end
    f_issues <= {f_issues, f_go};
    f_waited <= 0;
    if (f_waiting && !f_go) f_waited <= credit ? f_waited + 1 : f_waited;
    if (reset) begin f_busy <= 0; f_issues <= 0; f_waited <= 0; end
end

reg [F_LOOP-1:0] f_hits;
integer f_i;
always @(*) for (f_i = 0; f_i < F_LOOP; f_i = f_i + 1)
    f_hits[f_i] = f_flying[f_i] && f_addresses[15*f_i +: 15] == f_at;

always @(posedge clock) begin
    issue_only_if_free: assert (!(f_issue_here && f_busy));
    completing_burst_only_with_credit: assert (!(f_go && f_last && !credit));
    hazard_only_if_busy: assert (!(hazard && read_address == f_at) || f_busy);
    busy_is_a_hazard: assert (!(f_waiting && read_address == f_at && f_busy) || hazard);
    write_only_what_was_issued: assert (!f_write_here || f_busy);
    latency: assert (write == f_issues[F_LOOP-1]);
    issues_what_was_loaded: assert (!f_waiting || read_address == f_loaded);
    wait_is_bounded: assert (f_waited <= F_LOOP);

    // Invariants for the induction.
    assert (f_blocked == |f_same);
    assert (f_flying == f_issues);
    assert (f_busy == |f_hits);
    assert ((f_hits & (f_hits - 1)) == 0);
    assert (!f_waiting || f_last == f_waiting_last);
    assert (!(f_waiting && read_address == f_at) || f_same == f_hits);
    assert (!f_waiting || (f_same & ~({F_LOOP{1'b1}} << f_waited)) == 0);
end

reg f_had_hazard = 0;
reg f_cleared = 0;
always @(posedge clock) begin
    f_had_hazard <= hazard && read_address == f_at;
    if (reset) f_cleared <= 1;
    hazard_then_issue: cover (f_had_hazard && f_issue_here && f_was_here);
    one_burst_a_cycle: cover (f_go && &f_flying);
    waits_for_credit: cover (f_waiting && f_last && !credit && !hazard);
end
