// Each frame gets one decision, in order, and each decision sees the effect of all earlier ones. While decisions are made,
// the host changes neither members nor H nor the job.

// Names of internal signals; those of the state are in counter_steps.v.
wire f_reading_forced = reading$q[85] && !reads_ordinary$q;
wire f_deciding_forced = deciding$q[85] && !decides_ordinary$q;
wire f_deciding_repeats = deciding$q[87] && !decides_ordinary$q;
wire f_commit = decides$q && !decides_ordinary$q;
wire f_writes = f_commit && lookup$accept;

wire f_forced = decision[2];
wire f_frame_decided = decision_push && !f_forced;
wire [129:0] f_setting = {job, is_large, threshold, members, switches};
reg [1:0] f_owes = 0;
reg [2:0] f_since_write = 7;
reg [129:0] f_setting_before = 0;
reg f_started = 0;
always @(posedge clock) begin
    f_owes <= f_owes + header_pop - f_frame_decided;
    f_since_write <= f_writes ? 1 : f_since_write == 7 ? 7 : f_since_write + 1;
    if (reset) begin f_owes <= 0; f_since_write <= 7; end
    f_setting_before <= f_setting;
    f_started <= 1;
end

always @(posedge clock) begin
    assume (!f_started || f_setting == f_setting_before);
    assume (!fix_threshold);
    // A request without a frame is marked as such, and has no weight: see force_walker.rs and repeater.rs.
    assume (!force_valid || (force_key[85] && force_key[63:48] == 0));

    a_frame_before_its_decision: assert (!f_frame_decided || f_owes != 0 || header_pop);
    at_most_two_frames_at_once: assert (f_owes <= 2);
    a_control_packet_is_alone: assert (!(header_pop && header[1] && !header[0]) || f_owes == 0);
    takes_what_is_there: assert ((!header_pop || header_valid) && (!force_next || force_valid));
    looks_at_room_first: assert (!(header_pop || force_next) || room);
    each_frame_is_decided: assert (!(decides$q && !f_deciding_forced) || decision_push);
    each_decision_is_counted: assert (event_valid == (decision_push || (decides$q && f_deciding_repeats)));
    a_result_is_counted: assert (!result_push || (event_valid && (event_code == 3 || event_code == 4 || event_code == 16)));
    completed_means_a_result: assert (!(event_valid && event_code == 3) || result_push);
    a_repeat_is_counted: assert (!(decides$q && f_deciding_repeats)
        || (event_valid && event_code == (result_push ? 16 : 17)));
    late_is_counted: assert (!late_push || (event_valid && event_code == 12));
    // The slot of a decision is read four cycles before the decision. A change to the slots is visible one cycle after
    // it is written, and a change to the rounds two cycles after it is written.
    sees_all_earlier_decisions: assert (!f_commit || f_since_write >= 6);

    // Invariants for the induction.
    assert (f_owes == (f_reads && !f_reading_forced) + (f_decides_later && !f_deciding_forced));
    assert (f_since_write != 0);
    assert (!(f_reads && !reads_ordinary$q && reading$q[87]) || reading$q[85]);
    assert (!(f_decides_later && f_deciding_repeats) || deciding$q[85]);
    assert (!(f_reads && f_reading_forced) || reading$q[63:48] == 0);
    assert (!(f_decides_later && f_deciding_forced) || deciding$q[63:48] == 0);
    assert (!(f_takes && f_decides_later) || f_since_write >= 4 || decides_ordinary$q);
    assert (!(state$q == CounterState$Read && f_reads && !reads_ordinary$q) || f_since_write >= 2);
    assert (!(state$q == CounterState$Compare && f_reads && !reads_ordinary$q) || f_since_write >= 3);
    assert (!(state$q == CounterState$Read && f_decides_later && !decides_ordinary$q) || f_since_write >= 5);
end

always @(posedge clock) begin
    completed: cover (event_valid && event_code == 3);
    duplicate: cover (event_valid && event_code == 11);
    finished_by_the_host: cover (event_valid && event_code == 4);
    repeated: cover (event_valid && event_code == 16);
    unanswered: cover (event_valid && event_code == 17);
    two_frames_at_once: cover (f_owes == 2);
end
