// The budget of any one member: each request counts once, and the member never spends more than its budget.

// Names of internal signals.
wire [2:0] f_was_at = was_at$q;
wire f_gains = gains;
wire f_counted = has_spent$q;
wire [15:0] f_count_to_check = written$q;

(* anyconst *) reg [2:0] f_member;
(* anyconst *) reg [15:0] f_limit;
wire f_turn_of_member = f_was_at == f_member;
wire f_pending = pending$q[f_member];
wire f_checks = checks$q[f_member];

// The member's word in the memory, with the property that lut_ram.v proves.
reg [15:0] f_spent = 0;
always @(posedge clock) if (spent$write_enable && spent$write_address == f_member) f_spent <= spent$write_data;

// The value that was last compared with the budget, and whether a request was counted since.
reg f_known = 0;
reg [15:0] f_shown = 0;
reg f_recent = 0;
always @(posedge clock) begin
    if (f_turn_of_member) f_recent <= f_counted;
    if (f_checks) begin
        f_known <= 1;
        f_shown <= f_count_to_check;
    end
end

// A request that is not yet counted in the word, and its age in cycles.
reg f_due = 0;
reg [3:0] f_age = 15;
// Numbers of results and ticks in the current turn of all members and in the previous turn.
reg [3:0] f_turn = 0;
reg [3:0] f_income = 0;
reg [3:0] f_clears = 0;
reg f_up = 0;
reg f_up_long = 0;
reg f_was_exhausted = 0;
wire f_spends = spends && member == f_member && !clear;
always @(posedge clock) begin
    f_up <= 1;
    f_up_long <= f_up;
    if (f_turn_of_member && f_counted) f_due <= 0;
    if (f_age != 15) f_age <= f_age + 1;
    if (f_spends) begin f_due <= 1; f_age <= 1; end
    if (clear) f_due <= 0;
    f_turn <= f_was_at == 7 ? f_gains : f_turn + f_gains;
    if (f_was_at == 7) f_income <= f_turn;
    f_clears <= !clear ? 0 : f_clears == 15 ? 15 : f_clears + 1;
    if (f_up && exhausted[f_member]) f_was_exhausted <= 1;
end

wire [15:0] f_returned = f_income << 3;
wire [15:0] f_rest = f_spent > f_returned ? f_spent - f_returned : 0;

always @(posedge clock) begin
    assume (spent$read_address != f_member || spent$read_data == f_spent);
    assume (limit == f_limit);
    // All sums are discarded for 256 cycles.
    assume (clear || f_clears == 0 || f_clears >= 8);
    // The proof of the gate shows that requests are 16 cycles apart; that of the repeater, that an exhausted member has none.
    assume (!spends || (f_known && f_age >= 11 && !exhausted[member]));

    never_more_than_the_budget: assert ({1'b0, f_spent} + f_due <= limit);
    exhausted_if_the_budget_is_spent: assert (!f_known || f_checks || exhausted[f_member] == (f_spent >= limit));
    each_request_is_counted: assert (!f_due || f_age <= 9);
    changes_by_income_and_requests: assert (!f_up || clear || !f_turn_of_member
        || spent$write_data == f_rest + f_counted);
    cleared: assert (f_clears < 9 || (f_spent == 0 && !f_due));

    // Invariants for the induction.
    assert (spent$write_enable && spent$write_address == f_was_at && spent$read_address == at$q);
    assert (!f_up || (at$q == f_was_at + 3'd1 && was_own$q == 8'd1 << f_was_at));
    assert (!f_up || !f_turn_of_member || held$q == f_spent);
    assert (!f_up_long || checks$q == (8'd1 << ((f_was_at - 3'd1) & 3'd7)));
    assert (f_up_long || checks$q == 0);
    assert (!f_checks || f_count_to_check == f_spent);
    assert (!f_known || exhausted[f_member] == (f_shown >= limit));
    assert (!f_known || f_checks || f_shown == f_spent);
    assert (!f_known || !f_checks || {1'b0, f_spent} <= f_shown + f_recent);
    assert (!f_checks || !f_recent || f_age <= 10);
    assert (f_known || (!f_due && f_age == 15));
    assert (earned$q == f_turn && income$q == f_income && f_turn <= f_was_at + 4'd1 && f_income <= 8);
    assert (f_clears != 0 || f_due == (f_pending || (f_turn_of_member && f_counted)));
    assert (!(f_pending && f_turn_of_member && f_counted));
    assert (f_clears == 0 || !f_pending);
    assert (f_clears < 2 || !f_counted);
    assert (!f_pending || f_age + ((f_member - at$q) & 3'd7) <= 8);
    assert (!(f_due && f_turn_of_member && f_counted) || f_age <= 9);
    // Once the member has had its turn, nothing is spent until the clearing ends.
    assert (f_clears == 0 || ((f_was_at - 3'd1 - f_member) & 3'd7) >= f_clears || f_spent == 0);
    assert (f_clears == 0 || !f_due);
end

always @(posedge clock) begin
    spent_and_restored: cover (f_was_exhausted && f_known && !exhausted[f_member] && limit > 1);
end
