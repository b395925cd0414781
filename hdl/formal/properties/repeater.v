// Each queued request is taken or discarded once, and no queue is read while it is empty.

// Names of internal signals.
wire f_waits = waits$q;
wire f_serves_help = serves_help$q;
wire f_walks = walking$q;
wire f_looked = looked$q;
wire f_wanted = is_wanted$q;
wire [185:0] f_help = helps$data_out;
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

    // Invariants for the induction.
    assert (!(f_waits && !f_serves_help) || lates$valid);
    assert (!(f_waits && f_serves_help) || (f_looked && f_wanted));
    assert (!f_looked || f_walks);
    assert (!f_walks || helps$valid);
end
