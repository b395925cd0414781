// Steps of the Seg counter: invariants for the induction. The requests that are read and decided agree with the state.

// Names of internal signals.
wire f_takes = state$q == CounterState$Weigh;
wire f_settles = state$q == CounterState$Settle;
wire f_clears = state$q == CounterState$Clear;
wire f_reads = has_reading$q;
wire f_decides_later = has_deciding$q;
wire f_decoded = takes$q == (f_takes && !asked$q) && keeps_key$q == !f_takes && compares$q == (state$q == CounterState$Compare)
    && decides$q == (compares$q && f_decides_later) && clears$q == f_clears;
wire [1:0] f_inside = f_reads + f_decides_later;

reg f_up = 0;
always @(posedge clock) f_up <= 1;

always @(posedge clock) begin
    // See request_gate.v.
    assume (force_idle == !force_valid);
    assert (state$q <= CounterState$Clear);
    assert (!f_up || f_decoded);
    assert (!f_takes || !f_reads);
    assert (!f_settles || (f_reads && !f_decides_later));
    assert (!f_clears || (!f_reads && !f_decides_later));
    assert (f_takes || f_clears || f_reads || f_decides_later);
end
