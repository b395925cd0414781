// Each queued request is taken or discarded once, a Help requests exactly the segments that it names, and no queue is read
// while it is empty.

// Names of internal signals.
wire f_waits = waits$q;
wire f_checked = checked$q;
wire [50:0] f_request = request$q;
wire f_over = over$q;
wire f_walks = walking$q;
wire f_looked = looked$q;
wire f_looks = looks$q;
wire [31:0] f_part = part$q;
wire f_wanted = is_wanted$q;
wire f_ends = ends$q;
wire f_steps = steps;
wire f_loads_help = loads_help;
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
reg [7:0] f_exhausted_before = 0;
reg f_waited = 0;
reg f_loaded = 0;
reg [50:0] f_to_load = 0;
always @(posedge clock) begin
    f_exhausted_before <= exhausted;
    f_waited <= f_waits && !taken && !(f_checked && f_over) && !reset;
    f_loaded <= (lates$pop || f_loads_help) && !reset;
    f_to_load <= lates$pop ? f_late : {f_help[57:55], f_help[47:24], f_index};
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
    never_for_a_member_without_budget: assert (!valid || !f_exhausted_before[key[82:80]]);
    requests_what_it_has_loaded: assert (!valid || {key[82:80], key[47:0]} == f_request);
    loads_the_oldest: assert (!f_loaded || (f_waits && f_request == f_to_load));
    loads_only_what_the_help_names: assert (!f_loads_help || f_names[f_at]);
    loads_one_at_a_time: assert (!(lates$pop || f_loads_help) || (!f_waits && !(lates$pop && f_loads_help)));
    keeps_the_request_until_it_is_served: assert (f_waits == (f_waited || f_loaded));
    passes_over_what_the_help_does_not_name: assert (!f_steps || f_loads_help || !f_names[f_at]);
    goes_through_the_range_in_order: assert (!f_walks || (f_index == f_help[23:0] + f_at && f_at <= f_last));
    keeps_the_help_until_its_last_segment: assert (!helps$pop || f_at == f_last);

    // Invariants for the induction.
    assert (!f_checked || f_waits);
    assert (!f_checked || f_over == f_exhausted_before[f_request[50:48]]);
    assert (!f_looked || f_looks);
    assert (!f_looks || f_walks);
    assert (!f_looks || f_part == f_names[{f_at[6:5], 5'd0} +: 32]);
    assert (!f_walks || helps$valid);
    assert (!f_looked || (f_wanted == f_names[f_at] && f_ends == (f_at == f_last)));
end
