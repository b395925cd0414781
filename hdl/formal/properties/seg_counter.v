// Each frame gets one decision, in order. While decisions are made, the host changes neither members nor H nor the job.

// Names of internal signals.
wire f_idle = state$q == CounterState$Idle || state$q == CounterState$Clear;
wire f_known_state = state$q <= CounterState$Clear;
wire f_key_forced = key$q[85];
wire f_decoded = idle$q == (state$q == CounterState$Idle) && keeps_key$q == (state$q != CounterState$Idle)
    && decides$q == (state$q == CounterState$Decide) && clears$q == (state$q == CounterState$Clear);
wire f_commit = state$q == CounterState$Decide;

wire f_data = header[0];
wire f_forced = decision[2];
wire f_takes_data = header_pop && f_data;
wire [129:0] f_setting = {job, is_packed, threshold, members, switches};
reg f_owes = 0;
reg [129:0] f_setting_before = 0;
reg f_started = 0;
always @(posedge clock) begin
    if (f_takes_data) f_owes <= 1;
    if (decision_push && !(header_pop && !f_data)) f_owes <= 0;
    if (reset) f_owes <= 0;
    f_setting_before <= f_setting;
    f_started <= 1;
end

always @(posedge clock) begin
    assume (!f_started || f_setting == f_setting_before);
    assume (!fix_threshold);
    // A segment that the host finishes is marked as such, and has no weight: see force_walker.rs.
    assume (!force_valid || (force_key[85] && force_key[63:48] == 0));

    a_frame_before_its_decision: assert (!(decision_push && !f_forced) || f_owes || (header_pop && !f_data));
    one_frame_at_a_time: assert (!header_pop || !f_owes);
    takes_what_is_there: assert ((!header_pop || header_valid) && (!force_next || force_valid));
    looks_at_room_first: assert (!(header_pop || force_next) || room);
    each_frame_is_decided: assert (!(f_commit && f_owes) || decision_push);
    each_decision_is_counted: assert (decision_push == event_valid);
    a_result_is_counted: assert (!result_push || (event_valid && (event_code == 3 || event_code == 4)));
    completed_means_a_result: assert (!(event_valid && event_code == 3) || result_push);

    // Invariants for the induction.
    assert (f_known_state);
    assert (!f_started || f_decoded);
    assert (f_owes == (!f_idle && !f_key_forced));
end

always @(posedge clock) begin
    completed: cover (event_valid && event_code == 3);
    duplicate: cover (event_valid && event_code == 11);
    finished_by_the_host: cover (event_valid && event_code == 4);
end
