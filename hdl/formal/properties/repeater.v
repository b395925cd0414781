// Each queued request is taken or discarded once, a Help requests exactly the segments that it names, and no queue is read
// while it is empty.

// Names of internal signals.
wire f_waits = waits$q;
wire f_serves_help = serves_help$q;
wire f_walks = walking$q;
wire f_looked = looked$q;
wire f_wanted = is_wanted$q;
wire f_steps = steps;
wire [6:0] f_at = at$q;
wire [23:0] f_index = index$q;
wire [50:0] f_late = lates$data_out;
wire [185:0] f_help = helps$data_out;
wire [6:0] f_last = f_help[54:48];
wire [127:0] f_names = f_help[185:58];
wire f_keeps_help = helps$valid && !helps$pop && !reset;

reg f_valid_before = 0;
reg f_taken_before = 0;
reg f_late_before = 0;
reg f_help_before = 0;
reg f_reset_before = 1;
reg f_kept_help = 0;
reg [185:0] f_help_shown = 0;
always @(posedge clock) begin
    f_valid_before <= valid;
    f_taken_before <= taken;
    f_late_before <= late_push;
    f_help_before <= help_push;
    f_reset_before <= reset;
    f_kept_help <= f_keeps_help;
    f_help_shown <= f_help;
end

always @(posedge clock) begin
    // The proof of the queues shows that the oldest word is stable until it is removed.
    assume (!f_kept_help || f_help == f_help_shown);
    // The gate takes a request only after it has been valid, and decisions and Helps are at least two cycles apart.
    assume (!taken || (f_valid_before && !f_taken_before && !f_reset_before));
    assume (!(late_push && f_late_before) && !(help_push && f_help_before));

    a_request_is_a_repeat: assert (!valid || (key[85] && key[87] && key[63:48] == 0));
    never_for_a_member_without_budget: assert (!valid || !exhausted[key[82:80]]);
    taken_only_if_it_waits: assert (!taken || f_waits);
    requests_the_oldest_late_contribution: assert (!(valid && !f_serves_help)
        || {key[82:80], key[47:0]} == f_late);
    requests_what_the_help_names: assert (!(valid && f_serves_help)
        || (f_names[f_at] && {key[82:80], key[47:24]} == {f_help[57:55], f_help[47:24]} && key[23:0] == f_index));
    passes_over_what_it_does_not_name: assert (!f_steps || !f_names[f_at] || (f_waits && f_serves_help));
    goes_through_the_range_in_order: assert (!f_walks || (f_index == f_help[23:0] + f_at && f_at <= f_last));
    keeps_the_help_until_its_last_segment: assert (!helps$pop || f_at == f_last);
    each_late_contribution_is_served_once: assert (lates$pop == (f_waits && !f_serves_help && (taken || !valid)));

    // Invariants for the induction.
    assert (!(f_waits && !f_serves_help) || lates$valid);
    assert (!(f_waits && f_serves_help) || (f_looked && f_wanted));
    assert (!f_looked || f_walks);
    assert (!f_walks || helps$valid);
    assert (!f_looked || f_wanted == f_names[f_at]);
end
