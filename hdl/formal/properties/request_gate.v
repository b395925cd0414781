// The gate offers one request at a time, only while the output is free; the host's requests come first. Requests for
// results are offered only while no frame waits.

// Names of internal signals.
wire f_offers_repeat = repeats$q;

reg f_up = 0;
reg f_valid_before = 0;
reg f_advance_before = 0;
reg f_free_before = 0;
reg f_quiet_before = 0;
reg f_withdraw_before = 0;
reg f_finish_before = 0;
reg f_repeat_before = 0;
reg [4:0] f_since = 31;
always @(posedge clock) begin
    f_up <= 1;
    f_valid_before <= valid;
    f_advance_before <= advance;
    f_free_before <= free;
    f_quiet_before <= quiet;
    f_withdraw_before <= withdraw;
    f_finish_before <= finish_valid;
    f_repeat_before <= repeat_valid;
    f_since <= advance ? 1 : f_since == 31 ? 31 : f_since + 1;
    if (reset) f_since <= 31;
end

always @(posedge clock) begin
    assume (!advance || valid);
    assume (f_up || reset);

    idle_is_the_complement: assert (!f_up || idle == !valid);
    takes_one_request: assert (advance == (finish_taken || repeat_taken) && !(finish_taken && repeat_taken));
    offers_the_key_of_its_source: assert (!valid || key == (f_offers_repeat ? repeat_key : finish_key));
    offers_only_valid_requests: assert (!f_up || !valid || (f_offers_repeat ? f_repeat_before : f_finish_before));
    offers_only_while_free: assert (!f_up || !valid || f_free_before);
    repeats_only_while_no_frame_waits: assert (!f_up || !(valid && f_offers_repeat) || f_quiet_before);
    the_host_comes_first: assert (!f_up || !(valid && !f_valid_before && f_finish_before) || !f_offers_repeat);
    keeps_its_choice: assert (!(valid && f_valid_before) || f_offers_repeat == $past(f_offers_repeat));
    withdraws: assert (!f_up || !valid || !f_withdraw_before);
    waits_for_the_result: assert (!advance || f_since >= 16);

    // Invariant for the induction.
    assert (!f_up || f_since == 31 || f_since >= 16 || (pause$q == 16 - f_since && !valid));
end

always @(posedge clock) begin
    a_finish: cover (finish_taken);
    a_repeat: cover (repeat_taken && f_since != 31);
end
