// Written by `cargo run --release -p hdl -- generate` from hdl/src; do not edit.
module iswitch_accel(axis_aclk,axis_resetn,s_axis_tdata,s_axis_tkeep,s_axis_tuser,s_axis_tvalid,s_axis_tready,s_axis_tlast,m_axis_tdata,m_axis_tkeep,m_axis_tuser,m_axis_tvalid,m_axis_tready,m_axis_tlast,S_AXI_AWADDR,S_AXI_AWVALID,S_AXI_AWREADY,S_AXI_WDATA,S_AXI_WSTRB,S_AXI_WVALID,S_AXI_WREADY,S_AXI_BRESP,S_AXI_BVALID,S_AXI_BREADY,S_AXI_ARADDR,S_AXI_ARVALID,S_AXI_ARREADY,S_AXI_RDATA,S_AXI_RRESP,S_AXI_RVALID,S_AXI_RREADY);
    // Module arguments
    input wire  axis_aclk;
    input wire  axis_resetn;
    input wire  [255:0] s_axis_tdata;
    input wire  [31:0] s_axis_tkeep;
    input wire  [127:0] s_axis_tuser;
    input wire  s_axis_tvalid;
    output reg  s_axis_tready;
    input wire  s_axis_tlast;
    output reg  [255:0] m_axis_tdata;
    output reg  [31:0] m_axis_tkeep;
    output reg  [127:0] m_axis_tuser;
    output reg  m_axis_tvalid;
    input wire  m_axis_tready;
    output reg  m_axis_tlast;
    input wire  [11:0] S_AXI_AWADDR;
    input wire  S_AXI_AWVALID;
    output reg  S_AXI_AWREADY;
    input wire  [31:0] S_AXI_WDATA;
    input wire  [3:0] S_AXI_WSTRB;
    input wire  S_AXI_WVALID;
    output reg  S_AXI_WREADY;
    output reg  [1:0] S_AXI_BRESP;
    output reg  S_AXI_BVALID;
    input wire  S_AXI_BREADY;
    input wire  [11:0] S_AXI_ARADDR;
    input wire  S_AXI_ARVALID;
    output reg  S_AXI_ARREADY;
    output reg  [31:0] S_AXI_RDATA;
    output reg  [1:0] S_AXI_RRESP;
    output reg  S_AXI_RVALID;
    input wire  S_AXI_RREADY;
    // Constant declarations
    localparam  is_large = 1'b0;
    // Stub signals
    reg  datapath$clock;
    reg  datapath$reset;
    reg  datapath$is_large;
    reg  [65:0] datapath$filter;
    reg  [97:0] datapath$job;
    reg  [223:0] datapath$template;
    reg  datapath$clear;
    wire  datapath$clearing;
    reg  datapath$set_threshold;
    reg  datapath$set_halted;
    reg  datapath$set_member;
    reg  datapath$start_finish;
    reg  [23:0] datapath$finish_round;
    reg  [23:0] datapath$finish_first;
    wire  datapath$finishing;
    wire  datapath$busy;
    reg  [7:0] datapath$pace;
    reg  [15:0] datapath$budget;
    reg  datapath$select_slot;
    reg  [2:0] datapath$table_word;
    wire  [31:0] datapath$table_value;
    wire  [7:0] datapath$exhausted;
    wire  datapath$skips;
    reg  [5:0] datapath$word;
    reg  [31:0] datapath$data;
    wire  [7:0] datapath$threshold;
    wire  datapath$halted;
    wire  [4:0] datapath$event_code;
    wire  datapath$event_valid;
    wire  datapath$hazard;
    reg  [416:0] datapath$flit_in;
    reg  datapath$valid_in;
    wire  datapath$ready_in;
    wire  [416:0] datapath$flit_out;
    wire  datapath$valid_out;
    reg  datapath$ready_out;
    reg  registers$clock;
    reg  registers$reset;
    reg  registers$write;
    reg  [9:0] registers$write_word;
    reg  [31:0] registers$write_data;
    reg  [9:0] registers$read_word;
    wire  [31:0] registers$read_data;
    reg  [31:0] registers$status;
    reg  [31:0] registers$counter;
    reg  registers$frame_in;
    reg  registers$frame_out;
    reg  registers$hazard;
    reg  registers$skip;
    reg  [31:0] registers$table_value;
    wire  [65:0] registers$filter;
    wire  [97:0] registers$job;
    wire  [223:0] registers$template;
    wire  [23:0] registers$finish_round;
    wire  [23:0] registers$finish_first;
    wire  registers$sets_control;
    wire  registers$sets_threshold;
    wire  registers$starts_finish;
    wire  registers$clears_sums;
    wire  registers$clears_counters;
    wire  registers$sets_member;
    wire  registers$selects_slot;
    wire  [7:0] registers$pace;
    wire  [15:0] registers$budget;
    wire  registers$refused;
    wire  registers$clearing;
    reg  counters$clock;
    reg  counters$reset;
    reg  [4:0] counters$event_code;
    reg  counters$event_valid;
    reg  [4:0] counters$selected;
    wire  [31:0] counters$value;
    reg  axi$clock;
    reg  axi$reset;
    reg  axi$hold;
    reg  [11:0] axi$AWADDR;
    reg  axi$AWVALID;
    wire  axi$AWREADY;
    reg  [31:0] axi$WDATA;
    reg  axi$WVALID;
    wire  axi$WREADY;
    wire  axi$BVALID;
    reg  axi$BREADY;
    reg  [11:0] axi$ARADDR;
    reg  axi$ARVALID;
    wire  axi$ARREADY;
    wire  [31:0] axi$RDATA;
    wire  axi$RVALID;
    reg  axi$RREADY;
    wire  axi$write;
    wire  [9:0] axi$write_word;
    wire  [31:0] axi$write_data;
    wire  [9:0] axi$read_word;
    reg  [31:0] axi$read_data;
    reg  reset$d;
    wire  reset$q;
    reg  reset$clock;
    // Local signals
    reg  [31:0] flags;
    reg  [31:0] halted;
    reg  [31:0] clearing;
    reg  [31:0] finishing;
    reg  [31:0] busy;
    reg  [31:0] exhausted;
    reg  [31:0] refused;
    // Sub module instances
    iswitch_accel$datapath datapath(
        .clock(datapath$clock),
        .reset(datapath$reset),
        .is_large(datapath$is_large),
        .filter(datapath$filter),
        .job(datapath$job),
        .template(datapath$template),
        .clear(datapath$clear),
        .clearing(datapath$clearing),
        .set_threshold(datapath$set_threshold),
        .set_halted(datapath$set_halted),
        .set_member(datapath$set_member),
        .start_finish(datapath$start_finish),
        .finish_round(datapath$finish_round),
        .finish_first(datapath$finish_first),
        .finishing(datapath$finishing),
        .busy(datapath$busy),
        .pace(datapath$pace),
        .budget(datapath$budget),
        .select_slot(datapath$select_slot),
        .table_word(datapath$table_word),
        .table_value(datapath$table_value),
        .exhausted(datapath$exhausted),
        .skips(datapath$skips),
        .word(datapath$word),
        .data(datapath$data),
        .threshold(datapath$threshold),
        .halted(datapath$halted),
        .event_code(datapath$event_code),
        .event_valid(datapath$event_valid),
        .hazard(datapath$hazard),
        .flit_in(datapath$flit_in),
        .valid_in(datapath$valid_in),
        .ready_in(datapath$ready_in),
        .flit_out(datapath$flit_out),
        .valid_out(datapath$valid_out),
        .ready_out(datapath$ready_out)
    );
    iswitch_accel$registers registers(
        .clock(registers$clock),
        .reset(registers$reset),
        .write(registers$write),
        .write_word(registers$write_word),
        .write_data(registers$write_data),
        .read_word(registers$read_word),
        .read_data(registers$read_data),
        .status(registers$status),
        .counter(registers$counter),
        .frame_in(registers$frame_in),
        .frame_out(registers$frame_out),
        .hazard(registers$hazard),
        .skip(registers$skip),
        .table_value(registers$table_value),
        .filter(registers$filter),
        .job(registers$job),
        .template(registers$template),
        .finish_round(registers$finish_round),
        .finish_first(registers$finish_first),
        .sets_control(registers$sets_control),
        .sets_threshold(registers$sets_threshold),
        .starts_finish(registers$starts_finish),
        .clears_sums(registers$clears_sums),
        .clears_counters(registers$clears_counters),
        .sets_member(registers$sets_member),
        .selects_slot(registers$selects_slot),
        .pace(registers$pace),
        .budget(registers$budget),
        .refused(registers$refused),
        .clearing(registers$clearing)
    );
    iswitch_accel$counters counters(
        .clock(counters$clock),
        .reset(counters$reset),
        .event_code(counters$event_code),
        .event_valid(counters$event_valid),
        .selected(counters$selected),
        .value(counters$value)
    );
    iswitch_accel$axi axi(
        .clock(axi$clock),
        .reset(axi$reset),
        .hold(axi$hold),
        .AWADDR(axi$AWADDR),
        .AWVALID(axi$AWVALID),
        .AWREADY(axi$AWREADY),
        .WDATA(axi$WDATA),
        .WVALID(axi$WVALID),
        .WREADY(axi$WREADY),
        .BVALID(axi$BVALID),
        .BREADY(axi$BREADY),
        .ARADDR(axi$ARADDR),
        .ARVALID(axi$ARVALID),
        .ARREADY(axi$ARREADY),
        .RDATA(axi$RDATA),
        .RVALID(axi$RVALID),
        .RREADY(axi$RREADY),
        .write(axi$write),
        .write_word(axi$write_word),
        .write_data(axi$write_data),
        .read_word(axi$read_word),
        .read_data(axi$read_data)
    );
    iswitch_accel$reset reset(
        .d(reset$d),
        .q(reset$q),
        .clock(reset$clock)
    );
    // Update code
    always @(*) begin
        reset$clock = axis_aclk;
        reset$d = ~axis_resetn;
        datapath$clock = axis_aclk;
        registers$clock = axis_aclk;
        counters$clock = axis_aclk;
        axi$clock = axis_aclk;
        datapath$reset = reset$q;
        registers$reset = reset$q;
        axi$reset = reset$q;
        axi$hold = registers$clearing;
        counters$reset = reset$q | registers$clears_counters;
        datapath$is_large = is_large;
        datapath$flit_in[(64'h0)+:(256)] = s_axis_tdata;
        datapath$flit_in[(64'h100)+:(32)] = s_axis_tkeep;
        datapath$flit_in[(64'h120)+:(128)] = s_axis_tuser;
        datapath$flit_in[(64'h1a0)+:(1)] = s_axis_tlast;
        datapath$valid_in = s_axis_tvalid;
        s_axis_tready = datapath$ready_in & ~reset$q;
        m_axis_tdata = datapath$flit_out[(64'h0)+:(256)];
        m_axis_tkeep = datapath$flit_out[(64'h100)+:(32)];
        m_axis_tuser = datapath$flit_out[(64'h120)+:(128)];
        m_axis_tlast = datapath$flit_out[(64'h1a0)+:(1)];
        m_axis_tvalid = datapath$valid_out & ~reset$q;
        datapath$ready_out = m_axis_tready;
        axi$AWADDR = S_AXI_AWADDR;
        axi$AWVALID = S_AXI_AWVALID;
        S_AXI_AWREADY = axi$AWREADY;
        axi$WDATA = S_AXI_WDATA;
        axi$WVALID = S_AXI_WVALID;
        S_AXI_WREADY = axi$WREADY;
        S_AXI_BRESP = 32'h0;
        S_AXI_BVALID = axi$BVALID & ~reset$q;
        axi$BREADY = S_AXI_BREADY;
        axi$ARADDR = S_AXI_ARADDR;
        axi$ARVALID = S_AXI_ARVALID;
        S_AXI_ARREADY = axi$ARREADY;
        S_AXI_RDATA = axi$RDATA;
        S_AXI_RRESP = 32'h0;
        S_AXI_RVALID = axi$RVALID & ~reset$q;
        axi$RREADY = S_AXI_RREADY;
        registers$write = axi$write;
        registers$write_word = axi$write_word;
        registers$write_data = axi$write_data;
        registers$read_word = axi$read_word;
        axi$read_data = registers$read_data;
        flags = ((datapath$threshold) & 32'hffffffff);
        halted = 32'h0;
        clearing = 32'h0;
        finishing = 32'h0;
        busy = 32'h0;
        refused = 32'h0;
        exhausted = ((datapath$exhausted) & 32'hffffffff) << 32'h18;
        if (datapath$halted) begin
            halted = 32'h100;
        end
        if (datapath$clearing) begin
            clearing = 32'h200;
        end
        if (datapath$finishing) begin
            finishing = 32'h400;
        end
        if (datapath$busy) begin
            busy = 32'h800;
        end
        if (registers$refused) begin
            refused = 32'h1000;
        end
        registers$status = flags | halted | clearing | finishing | busy | refused | exhausted;
        registers$counter = counters$value;
        counters$selected = axi$read_word[(32'h0)+:(5)];
        counters$event_code = datapath$event_code;
        counters$event_valid = datapath$event_valid;
        registers$frame_in = s_axis_tvalid & datapath$ready_in & s_axis_tlast;
        registers$frame_out = datapath$valid_out & m_axis_tready & datapath$flit_out[(64'h1a0)+:(1)];
        registers$hazard = datapath$hazard;
        registers$skip = datapath$skips;
        datapath$select_slot = registers$selects_slot;
        datapath$table_word = axi$read_word[(32'h0)+:(3)];
        registers$table_value = datapath$table_value;
        datapath$budget = registers$budget;
        datapath$filter = registers$filter;
        datapath$pace = registers$pace;
        datapath$job = registers$job;
        datapath$template = registers$template;
        datapath$clear = registers$clears_sums;
        datapath$set_threshold = registers$sets_threshold;
        datapath$set_halted = registers$sets_control;
        datapath$set_member = registers$sets_member;
        datapath$start_finish = registers$starts_finish;
        datapath$finish_round = registers$finish_round;
        datapath$finish_first = registers$finish_first;
        datapath$word = axi$write_word[(32'h0)+:(6)];
        datapath$data = axi$write_data;
    end
endmodule // iswitch_accel
module iswitch_accel$axi(clock,reset,hold,AWADDR,AWVALID,AWREADY,WDATA,WVALID,WREADY,BVALID,BREADY,ARADDR,ARVALID,ARREADY,RDATA,RVALID,RREADY,write,write_word,write_data,read_word,read_data);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  hold;
    input wire  [11:0] AWADDR;
    input wire  AWVALID;
    output reg  AWREADY;
    input wire  [31:0] WDATA;
    input wire  WVALID;
    output reg  WREADY;
    output reg  BVALID;
    input wire  BREADY;
    input wire  [11:0] ARADDR;
    input wire  ARVALID;
    output reg  ARREADY;
    output reg  [31:0] RDATA;
    output reg  RVALID;
    input wire  RREADY;
    output reg  write;
    output reg  [9:0] write_word;
    output reg  [31:0] write_data;
    output reg  [9:0] read_word;
    input wire  [31:0] read_data;
    // Stub signals
    reg  writes$d;
    wire  writes$q;
    reg  writes$clock;
    reg  [9:0] word$d;
    wire  [9:0] word$q;
    reg  word$clock;
    reg  [31:0] data$d;
    wire  [31:0] data$q;
    reg  data$clock;
    reg  answers$d;
    wire  answers$q;
    reg  answers$clock;
    reg  [9:0] asked$d;
    wire  [9:0] asked$q;
    reg  asked$clock;
    reg  [1:0] reading$d;
    wire  [1:0] reading$q;
    reg  reading$clock;
    reg  [31:0] shown$d;
    wire  [31:0] shown$q;
    reg  shown$clock;
    reg  shows$d;
    wire  shows$q;
    reg  shows$clock;
    // Local signals
    reg  accepts;
    // Sub module instances
    iswitch_accel$axi$writes writes(
        .d(writes$d),
        .q(writes$q),
        .clock(writes$clock)
    );
    iswitch_accel$axi$word word(
        .d(word$d),
        .q(word$q),
        .clock(word$clock)
    );
    iswitch_accel$axi$data data(
        .d(data$d),
        .q(data$q),
        .clock(data$clock)
    );
    iswitch_accel$axi$answers answers(
        .d(answers$d),
        .q(answers$q),
        .clock(answers$clock)
    );
    iswitch_accel$axi$asked asked(
        .d(asked$d),
        .q(asked$q),
        .clock(asked$clock)
    );
    iswitch_accel$axi$reading reading(
        .d(reading$d),
        .q(reading$q),
        .clock(reading$clock)
    );
    iswitch_accel$axi$shown shown(
        .d(shown$d),
        .q(shown$q),
        .clock(shown$clock)
    );
    iswitch_accel$axi$shows shows(
        .d(shows$d),
        .q(shows$q),
        .clock(shows$clock)
    );
    // Update code
    always @(*) begin
        writes$clock = clock;
        word$clock = clock;
        data$clock = clock;
        answers$clock = clock;
        asked$clock = clock;
        reading$clock = clock;
        shown$clock = clock;
        shows$clock = clock;
        writes$d = writes$q;
        word$d = word$q;
        data$d = data$q;
        answers$d = answers$q;
        asked$d = asked$q;
        reading$d = reading$q;
        shown$d = shown$q;
        shows$d = shows$q;
        accepts = AWVALID & WVALID & ~answers$q & ~reset & ~hold;
        AWREADY = accepts;
        WREADY = accepts;
        writes$d = accepts;
        if (answers$q & BREADY) begin
            answers$d = 1'b0;
        end
        if (accepts) begin
            word$d = AWADDR[(32'h2)+:(10)];
            data$d = WDATA;
            answers$d = 1'b1;
        end
        BVALID = answers$q;
        write = writes$q;
        write_word = word$q;
        write_data = data$q;
        ARREADY = ~|reading$q & ~shows$q & ~reset & ~hold;
        if (ARREADY & ARVALID) begin
            asked$d = ARADDR[(32'h2)+:(10)];
            reading$d = 32'h1;
        end
        if (|reading$q) begin
            reading$d = reading$q + 32'h1;
        end
        if (&reading$q) begin
            shown$d = read_data;
            shows$d = 1'b1;
        end
        if (shows$q & RREADY) begin
            shows$d = 1'b0;
        end
        if (reset) begin
            writes$d = 1'b0;
            answers$d = 1'b0;
            reading$d = 32'h0;
            shows$d = 1'b0;
        end
        read_word = asked$q;
        RDATA = shown$q;
        RVALID = shows$q;
    end
endmodule // iswitch_accel$axi
module iswitch_accel$axi$answers(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$axi$answers
module iswitch_accel$axi$asked(d,q,clock);
    // Module arguments
    input wire  [9:0] d;
    output reg  [9:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 10'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$axi$asked
module iswitch_accel$axi$data(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$axi$data
module iswitch_accel$axi$reading(d,q,clock);
    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 2'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$axi$reading
module iswitch_accel$axi$shown(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$axi$shown
module iswitch_accel$axi$shows(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$axi$shows
module iswitch_accel$axi$word(d,q,clock);
    // Module arguments
    input wire  [9:0] d;
    output reg  [9:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 10'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$axi$word
module iswitch_accel$axi$writes(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$axi$writes
module iswitch_accel$counters(clock,reset,event_code,event_valid,selected,value);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [4:0] event_code;
    input wire  event_valid;
    input wire  [4:0] selected;
    output reg  [31:0] value;
    // Stub signals
    reg  counted$clock;
    reg  [4:0] counted$write_address;
    reg  [31:0] counted$write_data;
    reg  counted$write_enable;
    reg  [4:0] counted$read_address;
    wire  [31:0] counted$read_data;
    reg  shown$clock;
    reg  [4:0] shown$write_address;
    reg  [31:0] shown$write_data;
    reg  shown$write_enable;
    reg  [4:0] shown$read_address;
    wire  [31:0] shown$read_data;
    reg  [4:0] code$d;
    wire  [4:0] code$q;
    reg  code$clock;
    reg  raise$d;
    wire  raise$q;
    reg  raise$clock;
    reg  sweeping$d;
    wire  sweeping$q;
    reg  sweeping$clock;
    reg  [4:0] at$d;
    wire  [4:0] at$q;
    reg  at$clock;
    // Local signals
    reg  [4:0] address;
    reg  [31:0] word;
    reg  write;
    // Sub module instances
    iswitch_accel$counters$counted counted(
        .clock(counted$clock),
        .write_address(counted$write_address),
        .write_data(counted$write_data),
        .write_enable(counted$write_enable),
        .read_address(counted$read_address),
        .read_data(counted$read_data)
    );
    iswitch_accel$counters$shown shown(
        .clock(shown$clock),
        .write_address(shown$write_address),
        .write_data(shown$write_data),
        .write_enable(shown$write_enable),
        .read_address(shown$read_address),
        .read_data(shown$read_data)
    );
    iswitch_accel$counters$code code(
        .d(code$d),
        .q(code$q),
        .clock(code$clock)
    );
    iswitch_accel$counters$raise raise(
        .d(raise$d),
        .q(raise$q),
        .clock(raise$clock)
    );
    iswitch_accel$counters$sweeping sweeping(
        .d(sweeping$d),
        .q(sweeping$q),
        .clock(sweeping$clock)
    );
    iswitch_accel$counters$at at(
        .d(at$d),
        .q(at$q),
        .clock(at$clock)
    );
    // Update code
    always @(*) begin
        code$clock = clock;
        raise$clock = clock;
        sweeping$clock = clock;
        at$clock = clock;
        code$d = code$q;
        raise$d = raise$q;
        sweeping$d = sweeping$q;
        at$d = at$q;
        counted$clock = clock;
        shown$clock = clock;
        code$d = event_code;
        raise$d = event_valid;
        counted$read_address = code$q;
        shown$read_address = selected;
        value = shown$read_data;
        address = code$q;
        word = counted$read_data + 32'h1;
        write = raise$q;
        if (sweeping$q) begin
            address = at$q;
            word = 32'h0;
            write = 1'b1;
            at$d = at$q + 32'h1;
            if (&at$q) begin
                sweeping$d = 1'b0;
            end
        end
        if (reset) begin
            sweeping$d = 1'b1;
            at$d = 32'h0;
        end
        counted$write_address = address;
        counted$write_data = word;
        counted$write_enable = write;
        shown$write_address = address;
        shown$write_data = word;
        shown$write_enable = write;
    end
endmodule // iswitch_accel$counters
module iswitch_accel$counters$at(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$counters$at
module iswitch_accel$counters$code(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$counters$code
module iswitch_accel$counters$counted(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [4:0] write_address;
    input wire  [31:0] write_data;
    input wire  write_enable;
    input wire  [4:0] read_address;
    output reg  [31:0] read_data;
    // Update code (custom)
    (* ram_style = "distributed" *) reg [31:0] words[31:0];
    integer i;
    initial for (i = 0; i <= 31; i = i + 1) words[i] = 0;
    always @(posedge clock) if (write_enable) words[write_address] <= write_data;
    always @(*) read_data = words[read_address];
endmodule // iswitch_accel$counters$counted
module iswitch_accel$counters$raise(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$counters$raise
module iswitch_accel$counters$shown(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [4:0] write_address;
    input wire  [31:0] write_data;
    input wire  write_enable;
    input wire  [4:0] read_address;
    output reg  [31:0] read_data;
    // Update code (custom)
    (* ram_style = "distributed" *) reg [31:0] words[31:0];
    integer i;
    initial for (i = 0; i <= 31; i = i + 1) words[i] = 0;
    always @(posedge clock) if (write_enable) words[write_address] <= write_data;
    always @(*) read_data = words[read_address];
endmodule // iswitch_accel$counters$shown
module iswitch_accel$counters$sweeping(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$counters$sweeping
module iswitch_accel$datapath(clock,reset,is_large,filter,job,template,clear,clearing,set_threshold,set_halted,set_member,start_finish,finish_round,finish_first,finishing,busy,pace,budget,select_slot,table_word,table_value,exhausted,skips,word,data,threshold,halted,event_code,event_valid,hazard,flit_in,valid_in,ready_in,flit_out,valid_out,ready_out);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  is_large;
    input wire  [65:0] filter;
    input wire  [97:0] job;
    input wire  [223:0] template;
    input wire  clear;
    output reg  clearing;
    input wire  set_threshold;
    input wire  set_halted;
    input wire  set_member;
    input wire  start_finish;
    input wire  [23:0] finish_round;
    input wire  [23:0] finish_first;
    output reg  finishing;
    output reg  busy;
    input wire  [7:0] pace;
    input wire  [15:0] budget;
    input wire  select_slot;
    input wire  [2:0] table_word;
    output reg  [31:0] table_value;
    output reg  [7:0] exhausted;
    output reg  skips;
    input wire  [5:0] word;
    input wire  [31:0] data;
    output reg  [7:0] threshold;
    output reg  halted;
    output reg  [4:0] event_code;
    output reg  event_valid;
    output reg  hazard;
    input wire  [416:0] flit_in;
    input wire  valid_in;
    output reg  ready_in;
    output reg  [416:0] flit_out;
    output reg  valid_out;
    input wire  ready_out;
    // Stub signals
    reg  ingress$clock;
    reg  ingress$reset;
    reg  [65:0] ingress$filter;
    reg  ingress$set_member;
    reg  [3:0] ingress$word;
    reg  [31:0] ingress$data;
    wire  [7:0] ingress$members;
    wire  [7:0] ingress$ports;
    wire  [7:0] ingress$switches;
    reg  [2:0] ingress$asker;
    wire  [7:0] ingress$asker_port;
    reg  [416:0] ingress$flit;
    reg  ingress$valid;
    wire  ingress$ready;
    wire  [102:0] ingress$header;
    wire  ingress$header_valid;
    wire  ingress$no_header;
    reg  ingress$header_pop;
    wire  [416:0] ingress$oldest;
    wire  ingress$oldest_valid;
    wire  ingress$no_oldest;
    reg  ingress$pop;
    reg  control$clock;
    reg  control$reset;
    reg  [97:0] control$job;
    reg  [102:0] control$header;
    reg  control$strobe;
    reg  control$set_threshold;
    reg  [7:0] control$threshold_in;
    reg  control$fix_in;
    wire  control$fixes;
    reg  control$set_halted;
    reg  control$halted_in;
    wire  [7:0] control$threshold;
    wire  control$halted;
    reg  requests$clock;
    reg  requests$reset;
    reg  requests$clearing;
    reg  [97:0] requests$job;
    reg  requests$halted;
    reg  requests$start_finish;
    reg  [23:0] requests$finish_round;
    reg  [23:0] requests$finish_first;
    reg  [31:0] requests$data;
    wire  requests$finishing;
    reg  [50:0] requests$late;
    reg  requests$late_push;
    reg  [260:0] requests$control;
    reg  [15:0] requests$budget;
    reg  requests$earns;
    wire  [7:0] requests$exhausted;
    wire  requests$skips;
    wire  requests$busy;
    reg  requests$free;
    reg  requests$quiet;
    wire  [87:0] requests$key;
    wire  requests$valid;
    wire  requests$idle;
    reg  requests$advance;
    reg  counter$clock;
    reg  counter$reset;
    reg  counter$is_large;
    reg  counter$clear;
    wire  counter$clearing;
    reg  [97:0] counter$job;
    reg  [7:0] counter$threshold;
    reg  counter$fix_threshold;
    reg  counter$halted;
    reg  [7:0] counter$members;
    reg  [7:0] counter$switches;
    reg  [102:0] counter$header;
    reg  counter$header_valid;
    wire  counter$header_pop;
    reg  [87:0] counter$force_key;
    reg  counter$force_valid;
    reg  counter$force_idle;
    wire  counter$force_next;
    reg  counter$room;
    wire  [33:0] counter$decision;
    wire  counter$decision_push;
    wire  [72:0] counter$result;
    wire  counter$result_push;
    wire  [2:0] counter$asker;
    wire  counter$repeats;
    wire  [50:0] counter$late;
    wire  counter$late_push;
    wire  [4:0] counter$event_code;
    wire  counter$event_valid;
    reg  counter$select_slot;
    reg  [7:0] counter$slot;
    reg  [2:0] counter$table_word;
    wire  [31:0] counter$table_value;
    wire  counter$control;
    reg  decisions$clock;
    reg  decisions$reset;
    reg  [33:0] decisions$data_in;
    reg  decisions$push;
    wire  [33:0] decisions$data_out;
    wire  decisions$valid;
    wire  decisions$empty;
    reg  decisions$pop;
    wire  decisions$room;
    reg  results$clock;
    reg  results$reset;
    reg  [72:0] results$data_in;
    reg  results$push;
    wire  [72:0] results$data_out;
    wire  results$valid;
    wire  results$empty;
    reg  results$pop;
    wire  results$room;
    reg  templates$clock;
    reg  templates$reset;
    reg  [223:0] templates$data_in;
    reg  templates$push;
    wire  [223:0] templates$data_out;
    wire  templates$valid;
    wire  templates$empty;
    reg  templates$pop;
    wire  templates$room;
    reg  separator$clock;
    reg  separator$reset;
    reg  [33:0] separator$decision;
    reg  separator$decision_valid;
    wire  separator$decision_pop;
    reg  [416:0] separator$flit;
    reg  separator$flit_valid;
    reg  separator$flit_absent;
    wire  separator$flit_pop;
    wire  separator$bypass_valid;
    reg  separator$bypass_ready;
    wire  separator$bypass_copied;
    wire  [260:0] separator$control;
    wire  [272:0] separator$burst;
    wire  separator$burst_push;
    reg  separator$burst_room;
    reg  bursts$clock;
    reg  bursts$reset;
    reg  [272:0] bursts$data_in;
    reg  bursts$push;
    wire  [272:0] bursts$data_out;
    wire  bursts$valid;
    wire  bursts$empty;
    reg  bursts$pop;
    wire  bursts$room;
    reg  places$clock;
    reg  places$reset;
    reg  [14:0] places$data_in;
    reg  places$push;
    wire  [14:0] places$data_out;
    wire  places$valid;
    wire  places$empty;
    reg  places$pop;
    wire  places$room;
    reg  accumulator$clock;
    reg  accumulator$reset;
    reg  [272:0] accumulator$burst;
    reg  accumulator$burst_valid;
    wire  accumulator$burst_pop;
    reg  accumulator$credit;
    wire  [255:0] accumulator$sum;
    wire  accumulator$sum_push;
    wire  accumulator$hazard;
    reg  sums$clock;
    reg  sums$reset;
    reg  [255:0] sums$data_in;
    reg  sums$push;
    wire  [255:0] sums$data_out;
    wire  sums$valid;
    wire  sums$empty;
    reg  sums$pop;
    wire  sums$room;
    reg  output_module$clock;
    reg  output_module$reset;
    reg  [7:0] output_module$pace;
    reg  [223:0] output_module$template;
    reg  [72:0] output_module$info;
    reg  output_module$info_valid;
    wire  output_module$info_pop;
    reg  [255:0] output_module$sum;
    reg  output_module$sum_valid;
    reg  output_module$no_sum;
    wire  output_module$sum_pop;
    wire  [416:0] output_module$flit;
    wire  output_module$valid;
    reg  output_module$ready;
    reg  output_module$stalled;
    wire  output_module$busy;
    wire  output_module$free;
    reg  merge$clock;
    reg  merge$reset;
    reg  [416:0] merge$ordinary;
    reg  merge$ordinary_valid;
    reg  merge$ordinary_copied;
    reg  [7:0] merge$host_ports;
    wire  merge$ordinary_ready;
    reg  [416:0] merge$result;
    reg  merge$result_valid;
    wire  merge$result_ready;
    wire  merge$result_stalled;
    wire  [416:0] merge$flit;
    wire  merge$push;
    reg  merge$room;
    reg  leaving$clock;
    reg  leaving$reset;
    reg  [416:0] leaving$data_in;
    reg  leaving$push;
    wire  [416:0] leaving$data_out;
    wire  leaving$valid;
    wire  leaving$empty;
    reg  leaving$pop;
    wire  leaving$room;
    // Sub module instances
    iswitch_accel$datapath$ingress ingress(
        .clock(ingress$clock),
        .reset(ingress$reset),
        .filter(ingress$filter),
        .set_member(ingress$set_member),
        .word(ingress$word),
        .data(ingress$data),
        .members(ingress$members),
        .ports(ingress$ports),
        .switches(ingress$switches),
        .asker(ingress$asker),
        .asker_port(ingress$asker_port),
        .flit(ingress$flit),
        .valid(ingress$valid),
        .ready(ingress$ready),
        .header(ingress$header),
        .header_valid(ingress$header_valid),
        .no_header(ingress$no_header),
        .header_pop(ingress$header_pop),
        .oldest(ingress$oldest),
        .oldest_valid(ingress$oldest_valid),
        .no_oldest(ingress$no_oldest),
        .pop(ingress$pop)
    );
    iswitch_accel$datapath$control control(
        .clock(control$clock),
        .reset(control$reset),
        .job(control$job),
        .header(control$header),
        .strobe(control$strobe),
        .set_threshold(control$set_threshold),
        .threshold_in(control$threshold_in),
        .fix_in(control$fix_in),
        .fixes(control$fixes),
        .set_halted(control$set_halted),
        .halted_in(control$halted_in),
        .threshold(control$threshold),
        .halted(control$halted)
    );
    iswitch_accel$datapath$requests requests(
        .clock(requests$clock),
        .reset(requests$reset),
        .clearing(requests$clearing),
        .job(requests$job),
        .halted(requests$halted),
        .start_finish(requests$start_finish),
        .finish_round(requests$finish_round),
        .finish_first(requests$finish_first),
        .data(requests$data),
        .finishing(requests$finishing),
        .late(requests$late),
        .late_push(requests$late_push),
        .control(requests$control),
        .budget(requests$budget),
        .earns(requests$earns),
        .exhausted(requests$exhausted),
        .skips(requests$skips),
        .busy(requests$busy),
        .free(requests$free),
        .quiet(requests$quiet),
        .key(requests$key),
        .valid(requests$valid),
        .idle(requests$idle),
        .advance(requests$advance)
    );
    iswitch_accel$datapath$counter counter(
        .clock(counter$clock),
        .reset(counter$reset),
        .is_large(counter$is_large),
        .clear(counter$clear),
        .clearing(counter$clearing),
        .job(counter$job),
        .threshold(counter$threshold),
        .fix_threshold(counter$fix_threshold),
        .halted(counter$halted),
        .members(counter$members),
        .switches(counter$switches),
        .header(counter$header),
        .header_valid(counter$header_valid),
        .header_pop(counter$header_pop),
        .force_key(counter$force_key),
        .force_valid(counter$force_valid),
        .force_idle(counter$force_idle),
        .force_next(counter$force_next),
        .room(counter$room),
        .decision(counter$decision),
        .decision_push(counter$decision_push),
        .result(counter$result),
        .result_push(counter$result_push),
        .asker(counter$asker),
        .repeats(counter$repeats),
        .late(counter$late),
        .late_push(counter$late_push),
        .event_code(counter$event_code),
        .event_valid(counter$event_valid),
        .select_slot(counter$select_slot),
        .slot(counter$slot),
        .table_word(counter$table_word),
        .table_value(counter$table_value),
        .control(counter$control)
    );
    iswitch_accel$datapath$decisions decisions(
        .clock(decisions$clock),
        .reset(decisions$reset),
        .data_in(decisions$data_in),
        .push(decisions$push),
        .data_out(decisions$data_out),
        .valid(decisions$valid),
        .empty(decisions$empty),
        .pop(decisions$pop),
        .room(decisions$room)
    );
    iswitch_accel$datapath$results results(
        .clock(results$clock),
        .reset(results$reset),
        .data_in(results$data_in),
        .push(results$push),
        .data_out(results$data_out),
        .valid(results$valid),
        .empty(results$empty),
        .pop(results$pop),
        .room(results$room)
    );
    iswitch_accel$datapath$templates templates(
        .clock(templates$clock),
        .reset(templates$reset),
        .data_in(templates$data_in),
        .push(templates$push),
        .data_out(templates$data_out),
        .valid(templates$valid),
        .empty(templates$empty),
        .pop(templates$pop),
        .room(templates$room)
    );
    iswitch_accel$datapath$separator separator(
        .clock(separator$clock),
        .reset(separator$reset),
        .decision(separator$decision),
        .decision_valid(separator$decision_valid),
        .decision_pop(separator$decision_pop),
        .flit(separator$flit),
        .flit_valid(separator$flit_valid),
        .flit_absent(separator$flit_absent),
        .flit_pop(separator$flit_pop),
        .bypass_valid(separator$bypass_valid),
        .bypass_ready(separator$bypass_ready),
        .bypass_copied(separator$bypass_copied),
        .control(separator$control),
        .burst(separator$burst),
        .burst_push(separator$burst_push),
        .burst_room(separator$burst_room)
    );
    iswitch_accel$datapath$bursts bursts(
        .clock(bursts$clock),
        .reset(bursts$reset),
        .data_in(bursts$data_in),
        .push(bursts$push),
        .data_out(bursts$data_out),
        .valid(bursts$valid),
        .empty(bursts$empty),
        .pop(bursts$pop),
        .room(bursts$room)
    );
    iswitch_accel$datapath$places places(
        .clock(places$clock),
        .reset(places$reset),
        .data_in(places$data_in),
        .push(places$push),
        .data_out(places$data_out),
        .valid(places$valid),
        .empty(places$empty),
        .pop(places$pop),
        .room(places$room)
    );
    iswitch_accel$datapath$accumulator accumulator(
        .clock(accumulator$clock),
        .reset(accumulator$reset),
        .burst(accumulator$burst),
        .burst_valid(accumulator$burst_valid),
        .burst_pop(accumulator$burst_pop),
        .credit(accumulator$credit),
        .sum(accumulator$sum),
        .sum_push(accumulator$sum_push),
        .hazard(accumulator$hazard)
    );
    iswitch_accel$datapath$sums sums(
        .clock(sums$clock),
        .reset(sums$reset),
        .data_in(sums$data_in),
        .push(sums$push),
        .data_out(sums$data_out),
        .valid(sums$valid),
        .empty(sums$empty),
        .pop(sums$pop),
        .room(sums$room)
    );
    iswitch_accel$datapath$output_module output_module(
        .clock(output_module$clock),
        .reset(output_module$reset),
        .pace(output_module$pace),
        .template(output_module$template),
        .info(output_module$info),
        .info_valid(output_module$info_valid),
        .info_pop(output_module$info_pop),
        .sum(output_module$sum),
        .sum_valid(output_module$sum_valid),
        .no_sum(output_module$no_sum),
        .sum_pop(output_module$sum_pop),
        .flit(output_module$flit),
        .valid(output_module$valid),
        .ready(output_module$ready),
        .stalled(output_module$stalled),
        .busy(output_module$busy),
        .free(output_module$free)
    );
    iswitch_accel$datapath$merge merge(
        .clock(merge$clock),
        .reset(merge$reset),
        .ordinary(merge$ordinary),
        .ordinary_valid(merge$ordinary_valid),
        .ordinary_copied(merge$ordinary_copied),
        .host_ports(merge$host_ports),
        .ordinary_ready(merge$ordinary_ready),
        .result(merge$result),
        .result_valid(merge$result_valid),
        .result_ready(merge$result_ready),
        .result_stalled(merge$result_stalled),
        .flit(merge$flit),
        .push(merge$push),
        .room(merge$room)
    );
    iswitch_accel$datapath$leaving leaving(
        .clock(leaving$clock),
        .reset(leaving$reset),
        .data_in(leaving$data_in),
        .push(leaving$push),
        .data_out(leaving$data_out),
        .valid(leaving$valid),
        .empty(leaving$empty),
        .pop(leaving$pop),
        .room(leaving$room)
    );
    // Update code
    always @(*) begin
        ingress$clock = clock;
        control$clock = clock;
        requests$clock = clock;
        counter$clock = clock;
        decisions$clock = clock;
        results$clock = clock;
        templates$clock = clock;
        separator$clock = clock;
        bursts$clock = clock;
        places$clock = clock;
        accumulator$clock = clock;
        sums$clock = clock;
        output_module$clock = clock;
        merge$clock = clock;
        leaving$clock = clock;
        ingress$reset = reset;
        control$reset = reset;
        decisions$reset = reset;
        results$reset = reset;
        counter$reset = reset;
        templates$reset = reset;
        separator$reset = reset;
        bursts$reset = reset;
        accumulator$reset = reset;
        sums$reset = reset;
        output_module$reset = reset;
        merge$reset = reset;
        leaving$reset = reset;
        ingress$filter = filter;
        ingress$flit = flit_in;
        ingress$valid = valid_in;
        ready_in = ingress$ready;
        ingress$set_member = set_member;
        ingress$word = word[(32'h0)+:(4)];
        ingress$data = data;
        control$job = job;
        control$header = ingress$header;
        control$set_threshold = set_threshold;
        control$threshold_in = data[(32'h0)+:(8)];
        control$set_halted = set_halted;
        control$halted_in = data[32'h1];
        threshold = control$threshold;
        halted = control$halted;
        requests$reset = reset;
        requests$clearing = counter$clearing;
        requests$job = job;
        requests$halted = control$halted;
        requests$start_finish = start_finish;
        requests$finish_round = finish_round;
        requests$finish_first = finish_first;
        requests$data = data;
        finishing = requests$finishing;
        requests$late = counter$late;
        requests$late_push = counter$late_push;
        requests$control = separator$control;
        requests$budget = budget;
        exhausted = requests$exhausted;
        requests$earns = counter$result_push & ~counter$repeats;
        skips = requests$skips;
        requests$free = output_module$free;
        requests$advance = counter$force_next;
        requests$quiet = ingress$no_header;
        table_value = counter$table_value;
        counter$table_word = table_word;
        counter$select_slot = select_slot;
        counter$slot = data[(32'h0)+:(8)];
        counter$is_large = is_large;
        counter$job = job;
        counter$clear = clear;
        clearing = counter$clearing;
        counter$threshold = control$threshold;
        counter$halted = control$halted;
        counter$fix_threshold = control$fixes;
        control$fix_in = data[32'h1f];
        counter$members = ingress$members;
        counter$switches = ingress$switches;
        counter$header = ingress$header;
        counter$header_valid = ingress$header_valid;
        ingress$header_pop = counter$header_pop;
        control$strobe = counter$control;
        counter$force_key = requests$key;
        counter$force_idle = requests$idle;
        counter$force_valid = requests$valid;
        ingress$asker = counter$asker;
        counter$room = decisions$room & results$room;
        event_code = counter$event_code;
        event_valid = counter$event_valid;
        decisions$data_in = counter$decision;
        decisions$push = counter$decision_push;
        results$data_in = counter$result;
        results$push = counter$result_push;
        separator$decision = decisions$data_out;
        separator$decision_valid = decisions$valid;
        decisions$pop = separator$decision_pop;
        separator$flit_valid = ingress$oldest_valid;
        separator$flit = ingress$oldest;
        ingress$pop = separator$flit_pop;
        separator$bypass_ready = merge$ordinary_ready;
        separator$burst_room = bursts$room;
        bursts$data_in = separator$burst;
        bursts$push = separator$burst_push;
        places$reset = reset;
        places$data_in = separator$burst[(64'h100)+:(15)];
        places$push = separator$burst_push;
        places$pop = accumulator$burst_pop;
        accumulator$burst = bursts$data_out;
        accumulator$burst[(64'h100)+:(15)] = places$data_out;
        accumulator$burst_valid = bursts$valid;
        bursts$pop = accumulator$burst_pop;
        accumulator$credit = sums$room;
        hazard = accumulator$hazard;
        sums$data_in = accumulator$sum;
        sums$push = accumulator$sum_push;
        output_module$template = templates$data_out;
        templates$data_in = template;
        templates$push = counter$result_push;
        templates$data_in[(64'hc8)+:(8)] = template[(64'hc8)+:(8)] | ingress$ports;
        if (counter$repeats) begin
            templates$data_in[(64'hc8)+:(8)] = ingress$asker_port;
        end
        templates$pop = output_module$info_pop;
        output_module$pace = pace;
        busy = output_module$busy | requests$busy;
        output_module$info = results$data_out;
        output_module$info_valid = results$valid;
        results$pop = output_module$info_pop;
        output_module$sum = sums$data_out;
        output_module$sum_valid = sums$valid;
        output_module$no_sum = sums$empty;
        sums$pop = output_module$sum_pop;
        output_module$ready = merge$result_ready;
        output_module$stalled = merge$result_stalled;
        separator$flit_absent = ingress$no_oldest;
        merge$ordinary = ingress$oldest;
        merge$ordinary_valid = separator$bypass_valid;
        merge$ordinary_copied = separator$bypass_copied;
        merge$host_ports = template[(64'hc8)+:(8)];
        merge$result = output_module$flit;
        merge$result_valid = output_module$valid;
        merge$room = leaving$room;
        leaving$data_in = merge$flit;
        leaving$push = merge$push;
        flit_out = leaving$data_out;
        valid_out = leaving$valid;
        leaving$pop = leaving$valid & ready_out;
    end
endmodule // iswitch_accel$datapath
module iswitch_accel$datapath$accumulator(clock,reset,burst,burst_valid,burst_pop,credit,sum,sum_push,hazard);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [272:0] burst;
    input wire  burst_valid;
    output reg  burst_pop;
    input wire  credit;
    output reg  [255:0] sum;
    output reg  sum_push;
    output reg  hazard;
    // Stub signals
    reg  buffer$clock;
    reg  [14:0] buffer$write_address;
    reg  [255:0] buffer$write_data;
    reg  buffer$write_enable;
    reg  [14:0] buffer$read_address;
    wire  [255:0] buffer$read_data;
    reg  scoreboard$clock;
    reg  scoreboard$reset;
    reg  scoreboard$valid;
    reg  [14:0] scoreboard$address;
    reg  [1:0] scoreboard$flags;
    wire  scoreboard$load;
    wire  scoreboard$frees;
    reg  scoreboard$credit;
    wire  [14:0] scoreboard$read_address;
    wire  scoreboard$first;
    wire  scoreboard$write;
    wire  [14:0] scoreboard$write_address;
    wire  scoreboard$last;
    wire  scoreboard$hazard;
    reg  adders$clock;
    reg  [255:0] adders$a;
    reg  [255:0] adders$b;
    wire  [255:0] adders$sum;
    reg  [255:0] first_zero$lanes;
    reg  first_zero$zero;
    wire  [255:0] first_zero$out;
    reg  [255:0] issued$d;
    wire  [255:0] issued$q;
    reg  issued$clock;
    reg  [255:0] waited$d;
    wire  [255:0] waited$q;
    reg  waited$clock;
    reg  [255:0] delayed$d;
    wire  [255:0] delayed$q;
    reg  delayed$clock;
    reg  [255:0] read$d;
    wire  [255:0] read$q;
    reg  read$clock;
    // Sub module instances
    iswitch_accel$datapath$accumulator$buffer buffer(
        .clock(buffer$clock),
        .write_address(buffer$write_address),
        .write_data(buffer$write_data),
        .write_enable(buffer$write_enable),
        .read_address(buffer$read_address),
        .read_data(buffer$read_data)
    );
    iswitch_accel$datapath$accumulator$scoreboard scoreboard(
        .clock(scoreboard$clock),
        .reset(scoreboard$reset),
        .valid(scoreboard$valid),
        .address(scoreboard$address),
        .flags(scoreboard$flags),
        .load(scoreboard$load),
        .frees(scoreboard$frees),
        .credit(scoreboard$credit),
        .read_address(scoreboard$read_address),
        .first(scoreboard$first),
        .write(scoreboard$write),
        .write_address(scoreboard$write_address),
        .last(scoreboard$last),
        .hazard(scoreboard$hazard)
    );
    iswitch_accel$datapath$accumulator$adders adders(
        .clock(adders$clock),
        .a(adders$a),
        .b(adders$b),
        .sum(adders$sum)
    );
    iswitch_accel$datapath$accumulator$first_zero first_zero(
        .lanes(first_zero$lanes),
        .zero(first_zero$zero),
        .out(first_zero$out)
    );
    iswitch_accel$datapath$accumulator$issued issued(
        .d(issued$d),
        .q(issued$q),
        .clock(issued$clock)
    );
    iswitch_accel$datapath$accumulator$waited waited(
        .d(waited$d),
        .q(waited$q),
        .clock(waited$clock)
    );
    iswitch_accel$datapath$accumulator$delayed delayed(
        .d(delayed$d),
        .q(delayed$q),
        .clock(delayed$clock)
    );
    iswitch_accel$datapath$accumulator$read read(
        .d(read$d),
        .q(read$q),
        .clock(read$clock)
    );
    // Update code
    always @(*) begin
        issued$clock = clock;
        waited$clock = clock;
        delayed$clock = clock;
        read$clock = clock;
        issued$d = issued$q;
        waited$d = waited$q;
        delayed$d = delayed$q;
        read$d = read$q;
        buffer$clock = clock;
        scoreboard$clock = clock;
        adders$clock = clock;
        scoreboard$reset = reset;
        scoreboard$valid = burst_valid;
        scoreboard$address = burst[(64'h100)+:(15)];
        scoreboard$flags[(64'h0)+:(1)] = burst[(64'h10f)+:(1)];
        scoreboard$flags[(64'h1)+:(1)] = burst[(64'h110)+:(1)];
        scoreboard$credit = credit;
        burst_pop = scoreboard$load;
        hazard = scoreboard$hazard;
        if (scoreboard$frees) begin
            issued$d = burst[(64'h0)+:(256)];
        end
        buffer$read_address = scoreboard$read_address;
        waited$d = issued$q;
        delayed$d = waited$q;
        first_zero$lanes = buffer$read_data;
        first_zero$zero = scoreboard$first;
        read$d = first_zero$out;
        adders$a = read$q;
        adders$b = delayed$q;
        buffer$write_address = scoreboard$write_address;
        buffer$write_data = adders$sum;
        buffer$write_enable = scoreboard$write;
        sum = adders$sum;
        sum_push = scoreboard$write & scoreboard$last;
    end
endmodule // iswitch_accel$datapath$accumulator
module iswitch_accel$datapath$accumulator$adders(clock,a,b,sum);
    // Module arguments
    input wire  clock;
    input wire  [255:0] a;
    input wire  [255:0] b;
    output reg  [255:0] sum;
    // Stub signals
    reg  lane$0$clock;
    reg  [31:0] lane$0$a;
    reg  [31:0] lane$0$b;
    wire  [31:0] lane$0$sum;
    reg  lane$1$clock;
    reg  [31:0] lane$1$a;
    reg  [31:0] lane$1$b;
    wire  [31:0] lane$1$sum;
    reg  lane$2$clock;
    reg  [31:0] lane$2$a;
    reg  [31:0] lane$2$b;
    wire  [31:0] lane$2$sum;
    reg  lane$3$clock;
    reg  [31:0] lane$3$a;
    reg  [31:0] lane$3$b;
    wire  [31:0] lane$3$sum;
    reg  lane$4$clock;
    reg  [31:0] lane$4$a;
    reg  [31:0] lane$4$b;
    wire  [31:0] lane$4$sum;
    reg  lane$5$clock;
    reg  [31:0] lane$5$a;
    reg  [31:0] lane$5$b;
    wire  [31:0] lane$5$sum;
    reg  lane$6$clock;
    reg  [31:0] lane$6$a;
    reg  [31:0] lane$6$b;
    wire  [31:0] lane$6$sum;
    reg  lane$7$clock;
    reg  [31:0] lane$7$a;
    reg  [31:0] lane$7$b;
    wire  [31:0] lane$7$sum;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$0 lane$0(
        .clock(lane$0$clock),
        .a(lane$0$a),
        .b(lane$0$b),
        .sum(lane$0$sum)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1 lane$1(
        .clock(lane$1$clock),
        .a(lane$1$a),
        .b(lane$1$b),
        .sum(lane$1$sum)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2 lane$2(
        .clock(lane$2$clock),
        .a(lane$2$a),
        .b(lane$2$b),
        .sum(lane$2$sum)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3 lane$3(
        .clock(lane$3$clock),
        .a(lane$3$a),
        .b(lane$3$b),
        .sum(lane$3$sum)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4 lane$4(
        .clock(lane$4$clock),
        .a(lane$4$a),
        .b(lane$4$b),
        .sum(lane$4$sum)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5 lane$5(
        .clock(lane$5$clock),
        .a(lane$5$a),
        .b(lane$5$b),
        .sum(lane$5$sum)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6 lane$6(
        .clock(lane$6$clock),
        .a(lane$6$a),
        .b(lane$6$b),
        .sum(lane$6$sum)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7 lane$7(
        .clock(lane$7$clock),
        .a(lane$7$a),
        .b(lane$7$b),
        .sum(lane$7$sum)
    );
    // Update code
    always @(*) begin
        lane$0$clock = clock;
        lane$1$clock = clock;
        lane$2$clock = clock;
        lane$3$clock = clock;
        lane$4$clock = clock;
        lane$5$clock = clock;
        lane$6$clock = clock;
        lane$7$clock = clock;
        lane$0$a = a[(64'h0)+:(32)];
        lane$1$a = a[(64'h20)+:(32)];
        lane$2$a = a[(64'h40)+:(32)];
        lane$3$a = a[(64'h60)+:(32)];
        lane$4$a = a[(64'h80)+:(32)];
        lane$5$a = a[(64'ha0)+:(32)];
        lane$6$a = a[(64'hc0)+:(32)];
        lane$7$a = a[(64'he0)+:(32)];
        lane$0$b = b[(64'h0)+:(32)];
        lane$1$b = b[(64'h20)+:(32)];
        lane$2$b = b[(64'h40)+:(32)];
        lane$3$b = b[(64'h60)+:(32)];
        lane$4$b = b[(64'h80)+:(32)];
        lane$5$b = b[(64'ha0)+:(32)];
        lane$6$b = b[(64'hc0)+:(32)];
        lane$7$b = b[(64'he0)+:(32)];
        sum[(64'h0)+:(32)] = lane$0$sum;
        sum[(64'h20)+:(32)] = lane$1$sum;
        sum[(64'h40)+:(32)] = lane$2$sum;
        sum[(64'h60)+:(32)] = lane$3$sum;
        sum[(64'h80)+:(32)] = lane$4$sum;
        sum[(64'ha0)+:(32)] = lane$5$sum;
        sum[(64'hc0)+:(32)] = lane$6$sum;
        sum[(64'he0)+:(32)] = lane$7$sum;
    end
endmodule // iswitch_accel$datapath$accumulator$adders
module iswitch_accel$datapath$accumulator$adders$lane$0(clock,a,b,sum);
    // Module arguments
    input wire  clock;
    input wire  [31:0] a;
    input wire  [31:0] b;
    output reg  [31:0] sum;
    // Stub signals
    reg  unpack$clock;
    reg  [31:0] unpack$a;
    reg  [31:0] unpack$b;
    wire  [3:0] unpack$kind;
    wire  [7:0] unpack$exponent;
    wire  [7:0] unpack$distance;
    wire  [23:0] unpack$larger;
    wire  [23:0] unpack$smaller;
    reg  align$clock;
    reg  [3:0] align$kind_in;
    reg  [7:0] align$exponent_in;
    reg  [7:0] align$distance;
    reg  [23:0] align$larger;
    reg  [23:0] align$smaller;
    wire  [3:0] align$kind;
    wire  [7:0] align$exponent;
    wire  [27:0] align$total;
    reg  normalise$clock;
    reg  [3:0] normalise$kind_in;
    reg  [7:0] normalise$exponent_in;
    reg  [27:0] normalise$total;
    wire  [3:0] normalise$kind;
    wire  [7:0] normalise$exponent;
    wire  [26:0] normalise$fraction;
    reg  round$clock;
    reg  [3:0] round$kind;
    reg  [7:0] round$exponent;
    reg  [26:0] round$fraction;
    wire  [31:0] round$sum;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$0$unpack unpack(
        .clock(unpack$clock),
        .a(unpack$a),
        .b(unpack$b),
        .kind(unpack$kind),
        .exponent(unpack$exponent),
        .distance(unpack$distance),
        .larger(unpack$larger),
        .smaller(unpack$smaller)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$align align(
        .clock(align$clock),
        .kind_in(align$kind_in),
        .exponent_in(align$exponent_in),
        .distance(align$distance),
        .larger(align$larger),
        .smaller(align$smaller),
        .kind(align$kind),
        .exponent(align$exponent),
        .total(align$total)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$normalise normalise(
        .clock(normalise$clock),
        .kind_in(normalise$kind_in),
        .exponent_in(normalise$exponent_in),
        .total(normalise$total),
        .kind(normalise$kind),
        .exponent(normalise$exponent),
        .fraction(normalise$fraction)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$round round(
        .clock(round$clock),
        .kind(round$kind),
        .exponent(round$exponent),
        .fraction(round$fraction),
        .sum(round$sum)
    );
    // Update code
    always @(*) begin
        unpack$clock = clock;
        align$clock = clock;
        normalise$clock = clock;
        round$clock = clock;
        unpack$a = a;
        unpack$b = b;
        align$kind_in = unpack$kind;
        align$exponent_in = unpack$exponent;
        align$distance = unpack$distance;
        align$larger = unpack$larger;
        align$smaller = unpack$smaller;
        normalise$kind_in = align$kind;
        normalise$exponent_in = align$exponent;
        normalise$total = align$total;
        round$kind = normalise$kind;
        round$exponent = normalise$exponent;
        round$fraction = normalise$fraction;
        sum = round$sum;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0
module iswitch_accel$datapath$accumulator$adders$lane$0$align(clock,kind_in,exponent_in,distance,larger,smaller,kind,exponent,total);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind_in;
    input wire  [7:0] exponent_in;
    input wire  [7:0] distance;
    input wire  [23:0] larger;
    input wire  [23:0] smaller;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [27:0] total;
    // Stub signals
    reg  [3:0] aligned_kind$d;
    wire  [3:0] aligned_kind$q;
    reg  aligned_kind$clock;
    reg  [7:0] aligned_exponent$d;
    wire  [7:0] aligned_exponent$q;
    reg  aligned_exponent$clock;
    reg  [23:0] aligned_large$d;
    wire  [23:0] aligned_large$q;
    reg  aligned_large$clock;
    reg  [26:0] aligned_small$d;
    wire  [26:0] aligned_small$q;
    reg  aligned_small$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [27:0] out_total$d;
    wire  [27:0] out_total$q;
    reg  out_total$clock;
    // Local signals
    reg  [26:0] by_0;
    reg  [26:0] by_1;
    reg  [26:0] by_3;
    reg  [26:0] by_7;
    reg  [26:0] by_15;
    reg  [26:0] by_31;
    reg  lost_1;
    reg  lost_3;
    reg  lost_7;
    reg  lost_15;
    reg  lost_31;
    reg  all_lost;
    reg  [28:0] augend;
    reg  [28:0] addend;
    reg  [28:0] complement;
    reg  [28:0] sum;
    reg  [28:0] shifted;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$0$align$aligned_kind aligned_kind(
        .d(aligned_kind$d),
        .q(aligned_kind$q),
        .clock(aligned_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$align$aligned_exponent aligned_exponent(
        .d(aligned_exponent$d),
        .q(aligned_exponent$q),
        .clock(aligned_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$align$aligned_large aligned_large(
        .d(aligned_large$d),
        .q(aligned_large$q),
        .clock(aligned_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$align$aligned_small aligned_small(
        .d(aligned_small$d),
        .q(aligned_small$q),
        .clock(aligned_small$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$align$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$align$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$align$out_total out_total(
        .d(out_total$d),
        .q(out_total$q),
        .clock(out_total$clock)
    );
    // Update code
    always @(*) begin
        aligned_kind$clock = clock;
        aligned_exponent$clock = clock;
        aligned_large$clock = clock;
        aligned_small$clock = clock;
        aligned_kind$d = aligned_kind$q;
        aligned_exponent$d = aligned_exponent$q;
        aligned_large$d = aligned_large$q;
        aligned_small$d = aligned_small$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_total$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_total$d = out_total$q;
        by_0 = ((smaller) & 27'h7ffffff) << 32'h3;
        by_1 = by_0;
        lost_1 = 1'b0;
        if (distance[32'h0]) begin
            by_1 = by_0 >> 32'h1;
            lost_1 = by_0[32'h0];
        end
        by_3 = by_1;
        lost_3 = lost_1;
        if (distance[32'h1]) begin
            by_3 = by_1 >> 32'h2;
            lost_3 = lost_1 | |by_1[(32'h0)+:(2)];
        end
        by_7 = by_3;
        lost_7 = lost_3;
        if (distance[32'h2]) begin
            by_7 = by_3 >> 32'h4;
            lost_7 = lost_3 | |by_3[(32'h0)+:(4)];
        end
        by_15 = by_7;
        lost_15 = lost_7;
        if (distance[32'h3]) begin
            by_15 = by_7 >> 32'h8;
            lost_15 = lost_7 | |by_7[(32'h0)+:(8)];
        end
        by_31 = by_15;
        lost_31 = lost_15;
        if (distance[32'h4]) begin
            by_31 = by_15 >> 32'h10;
            lost_31 = lost_15 | |by_15[(32'h0)+:(16)];
        end
        aligned_small$d = by_31 | ((lost_31) & 27'h7ffffff);
        all_lost = |distance[(32'h5)+:(3)];
        if (all_lost) begin
            aligned_small$d = ((|smaller) & 27'h7ffffff);
        end
        aligned_kind$d = kind_in;
        aligned_exponent$d = exponent_in;
        aligned_large$d = larger;
        shifted = ((aligned_large$q) & 29'h1fffffff) << 32'h4;
        augend = shifted | 32'h1;
        addend = ((aligned_small$q) & 29'h1fffffff) << 32'h1;
        complement = addend;
        if (aligned_kind$q[(64'h1)+:(1)]) begin
            complement = ~addend;
        end
        sum = augend + complement;
        out_total$d = sum[(32'h1)+:(28)];
        out_kind$d = aligned_kind$q;
        out_exponent$d = aligned_exponent$q;
        kind = out_kind$q;
        exponent = out_exponent$q;
        total = out_total$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$align
module iswitch_accel$datapath$accumulator$adders$lane$0$align$aligned_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$align$aligned_exponent
module iswitch_accel$datapath$accumulator$adders$lane$0$align$aligned_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$align$aligned_kind
module iswitch_accel$datapath$accumulator$adders$lane$0$align$aligned_large(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$align$aligned_large
module iswitch_accel$datapath$accumulator$adders$lane$0$align$aligned_small(d,q,clock);
    // Module arguments
    input wire  [26:0] d;
    output reg  [26:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 27'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$align$aligned_small
module iswitch_accel$datapath$accumulator$adders$lane$0$align$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$align$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$0$align$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$align$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$0$align$out_total(d,q,clock);
    // Module arguments
    input wire  [27:0] d;
    output reg  [27:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 28'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$align$out_total
module iswitch_accel$datapath$accumulator$adders$lane$0$normalise(clock,kind_in,exponent_in,total,kind,exponent,fraction);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind_in;
    input wire  [7:0] exponent_in;
    input wire  [27:0] total;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [26:0] fraction;
    // Stub signals
    reg  [3:0] counted_kind$d;
    wire  [3:0] counted_kind$q;
    reg  counted_kind$clock;
    reg  [7:0] counted_exponent$d;
    wire  [7:0] counted_exponent$q;
    reg  counted_exponent$clock;
    reg  [27:0] counted_total$d;
    wire  [27:0] counted_total$q;
    reg  counted_total$clock;
    reg  [4:0] shift$d;
    wire  [4:0] shift$q;
    reg  shift$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [26:0] out_fraction$d;
    wire  [26:0] out_fraction$q;
    reg  out_fraction$clock;
    // Local signals
    reg  [27:0] padded;
    reg  [3:0] group$0;
    reg  [3:0] group$1;
    reg  [3:0] group$2;
    reg  [3:0] group$3;
    reg  [3:0] group$4;
    reg  [3:0] group$5;
    reg  [3:0] group$6;
    reg  [4:0] within$0;
    reg  [4:0] within$1;
    reg  [4:0] within$2;
    reg  [4:0] within$3;
    reg  [4:0] within$4;
    reg  [4:0] within$5;
    reg  [4:0] within$6;
    reg  [4:0] groups_before;
    reg  [4:0] zeros_within;
    reg  [4:0] zeros;
    reg  [7:0] wide_zeros;
    reg  [7:0] most;
    reg  [26:0] by_0;
    reg  [26:0] by_1;
    reg  [26:0] by_3;
    reg  [26:0] by_7;
    reg  [26:0] by_15;
    reg  [26:0] by_31;
    reg  [7:0] wide_shift;
    reg  lowest;
    reg  [26:0] carried;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$0$normalise$counted_kind counted_kind(
        .d(counted_kind$d),
        .q(counted_kind$q),
        .clock(counted_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$normalise$counted_exponent counted_exponent(
        .d(counted_exponent$d),
        .q(counted_exponent$q),
        .clock(counted_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$normalise$counted_total counted_total(
        .d(counted_total$d),
        .q(counted_total$q),
        .clock(counted_total$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$normalise$shift shift(
        .d(shift$d),
        .q(shift$q),
        .clock(shift$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$normalise$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$normalise$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$normalise$out_fraction out_fraction(
        .d(out_fraction$d),
        .q(out_fraction$q),
        .clock(out_fraction$clock)
    );
    // Update code
    always @(*) begin
        counted_kind$clock = clock;
        counted_exponent$clock = clock;
        counted_total$clock = clock;
        shift$clock = clock;
        counted_kind$d = counted_kind$q;
        counted_exponent$d = counted_exponent$q;
        counted_total$d = counted_total$q;
        shift$d = shift$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_fraction$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_fraction$d = out_fraction$q;
        padded = total << 32'h1;
        groups_before = 32'h1c;
        zeros_within = 32'h3;
        group$0 = padded[(32'h4 * 0)+:(4)];
        within$0 = 32'h3;
        if (group$0[32'h1]) begin
            within$0 = 32'h2;
        end
        if (group$0[32'h2]) begin
            within$0 = 32'h1;
        end
        if (group$0[32'h3]) begin
            within$0 = 32'h0;
        end
        if (|group$0) begin
            groups_before = (32'h4 * (32'h6 - 0));
            zeros_within = within$0;
        end
        group$1 = padded[(32'h4 * 1)+:(4)];
        within$1 = 32'h3;
        if (group$1[32'h1]) begin
            within$1 = 32'h2;
        end
        if (group$1[32'h2]) begin
            within$1 = 32'h1;
        end
        if (group$1[32'h3]) begin
            within$1 = 32'h0;
        end
        if (|group$1) begin
            groups_before = (32'h4 * (32'h6 - 1));
            zeros_within = within$1;
        end
        group$2 = padded[(32'h4 * 2)+:(4)];
        within$2 = 32'h3;
        if (group$2[32'h1]) begin
            within$2 = 32'h2;
        end
        if (group$2[32'h2]) begin
            within$2 = 32'h1;
        end
        if (group$2[32'h3]) begin
            within$2 = 32'h0;
        end
        if (|group$2) begin
            groups_before = (32'h4 * (32'h6 - 2));
            zeros_within = within$2;
        end
        group$3 = padded[(32'h4 * 3)+:(4)];
        within$3 = 32'h3;
        if (group$3[32'h1]) begin
            within$3 = 32'h2;
        end
        if (group$3[32'h2]) begin
            within$3 = 32'h1;
        end
        if (group$3[32'h3]) begin
            within$3 = 32'h0;
        end
        if (|group$3) begin
            groups_before = (32'h4 * (32'h6 - 3));
            zeros_within = within$3;
        end
        group$4 = padded[(32'h4 * 4)+:(4)];
        within$4 = 32'h3;
        if (group$4[32'h1]) begin
            within$4 = 32'h2;
        end
        if (group$4[32'h2]) begin
            within$4 = 32'h1;
        end
        if (group$4[32'h3]) begin
            within$4 = 32'h0;
        end
        if (|group$4) begin
            groups_before = (32'h4 * (32'h6 - 4));
            zeros_within = within$4;
        end
        group$5 = padded[(32'h4 * 5)+:(4)];
        within$5 = 32'h3;
        if (group$5[32'h1]) begin
            within$5 = 32'h2;
        end
        if (group$5[32'h2]) begin
            within$5 = 32'h1;
        end
        if (group$5[32'h3]) begin
            within$5 = 32'h0;
        end
        if (|group$5) begin
            groups_before = (32'h4 * (32'h6 - 5));
            zeros_within = within$5;
        end
        group$6 = padded[(32'h4 * 6)+:(4)];
        within$6 = 32'h3;
        if (group$6[32'h1]) begin
            within$6 = 32'h2;
        end
        if (group$6[32'h2]) begin
            within$6 = 32'h1;
        end
        if (group$6[32'h3]) begin
            within$6 = 32'h0;
        end
        if (|group$6) begin
            groups_before = (32'h4 * (32'h6 - 6));
            zeros_within = within$6;
        end
        zeros = groups_before | zeros_within;
        most = exponent_in - 32'h1;
        wide_zeros = ((zeros) & 8'hff);
        shift$d = zeros;
        if (wide_zeros > most) begin
            shift$d = most[(32'h0)+:(5)];
        end
        counted_kind$d = kind_in;
        counted_exponent$d = exponent_in;
        counted_total$d = total;
        by_0 = counted_total$q[(32'h0)+:(27)];
        by_1 = by_0;
        if (shift$q[32'h0]) begin
            by_1 = by_0 << 32'h1;
        end
        by_3 = by_1;
        if (shift$q[32'h1]) begin
            by_3 = by_1 << 32'h2;
        end
        by_7 = by_3;
        if (shift$q[32'h2]) begin
            by_7 = by_3 << 32'h4;
        end
        by_15 = by_7;
        if (shift$q[32'h3]) begin
            by_15 = by_7 << 32'h8;
        end
        by_31 = by_15;
        if (shift$q[32'h4]) begin
            by_31 = by_15 << 32'h10;
        end
        wide_shift = ((shift$q) & 8'hff);
        lowest = counted_total$q[(32'h0)+:(1)];
        carried = counted_total$q[(32'h1)+:(27)];
        out_fraction$d = by_31;
        out_exponent$d = counted_exponent$q - wide_shift;
        if (counted_total$q[32'h1b]) begin
            out_fraction$d = carried | ((lowest) & 27'h7ffffff);
            out_exponent$d = counted_exponent$q + 32'h1;
        end
        out_kind$d = counted_kind$q;
        if (counted_kind$q[(64'h1)+:(1)] & ~|counted_total$q) begin
            out_kind$d[(64'h0)+:(1)] = 1'b0;
        end
        kind = out_kind$q;
        exponent = out_exponent$q;
        fraction = out_fraction$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$normalise
module iswitch_accel$datapath$accumulator$adders$lane$0$normalise$counted_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$normalise$counted_exponent
module iswitch_accel$datapath$accumulator$adders$lane$0$normalise$counted_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$normalise$counted_kind
module iswitch_accel$datapath$accumulator$adders$lane$0$normalise$counted_total(d,q,clock);
    // Module arguments
    input wire  [27:0] d;
    output reg  [27:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 28'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$normalise$counted_total
module iswitch_accel$datapath$accumulator$adders$lane$0$normalise$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$normalise$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$0$normalise$out_fraction(d,q,clock);
    // Module arguments
    input wire  [26:0] d;
    output reg  [26:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 27'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$normalise$out_fraction
module iswitch_accel$datapath$accumulator$adders$lane$0$normalise$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$normalise$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$0$normalise$shift(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$normalise$shift
module iswitch_accel$datapath$accumulator$adders$lane$0$round(clock,kind,exponent,fraction,sum);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind;
    input wire  [7:0] exponent;
    input wire  [26:0] fraction;
    output reg  [31:0] sum;
    // Stub signals
    reg  [31:0] out_sum$d;
    wire  [31:0] out_sum$q;
    reg  out_sum$clock;
    // Local signals
    reg  [22:0] kept;
    reg  [30:0] field;
    reg  [30:0] truncated;
    reg  up;
    reg  [30:0] rounded;
    reg  largest;
    reg  overflows;
    reg  [31:0] magnitude;
    reg  [31:0] sign;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$0$round$out_sum out_sum(
        .d(out_sum$d),
        .q(out_sum$q),
        .clock(out_sum$clock)
    );
    // Update code
    always @(*) begin
        out_sum$clock = clock;
        out_sum$d = out_sum$q;
        kept = fraction[(32'h3)+:(23)];
        field = ((exponent) & 31'h7fffffff) << 32'h17;
        truncated = ((kept) & 31'h7fffffff);
        if (fraction[32'h1a]) begin
            truncated = ((kept) & 31'h7fffffff) | field;
        end
        up = fraction[32'h2] & (fraction[32'h3] | fraction[32'h1] | fraction[32'h0]);
        rounded = truncated + ((up) & 31'h7fffffff);
        largest = (exponent == 32'hfe) & &kept;
        overflows = fraction[32'h1a] & (&exponent | (largest & up));
        magnitude = ((rounded) & 32'hffffffff);
        if (overflows | kind[(64'h3)+:(1)]) begin
            magnitude = 32'h7f800000;
        end
        sign = ((kind[(64'h0)+:(1)]) & 32'hffffffff) << 32'h1f;
        out_sum$d = magnitude | sign;
        if (kind[(64'h2)+:(1)]) begin
            out_sum$d = 32'h7fc00000;
        end
        sum = out_sum$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$round
module iswitch_accel$datapath$accumulator$adders$lane$0$round$out_sum(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$round$out_sum
module iswitch_accel$datapath$accumulator$adders$lane$0$unpack(clock,a,b,kind,exponent,distance,larger,smaller);
    // Module arguments
    input wire  clock;
    input wire  [31:0] a;
    input wire  [31:0] b;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [7:0] distance;
    output reg  [23:0] larger;
    output reg  [23:0] smaller;
    // Stub signals
    reg  a_is_large$d;
    wire  a_is_large$q;
    reg  a_is_large$clock;
    reg  a_is_small$d;
    wire  a_is_small$q;
    reg  a_is_small$clock;
    reg  [3:0] held_kind$d;
    wire  [3:0] held_kind$q;
    reg  held_kind$clock;
    reg  sign_a$d;
    wire  sign_a$q;
    reg  sign_a$clock;
    reg  sign_b$d;
    wire  sign_b$q;
    reg  sign_b$clock;
    reg  [7:0] shift_a$d;
    wire  [7:0] shift_a$q;
    reg  shift_a$clock;
    reg  [7:0] shift_b$d;
    wire  [7:0] shift_b$q;
    reg  shift_b$clock;
    reg  [23:0] significand_a$d;
    wire  [23:0] significand_a$q;
    reg  significand_a$clock;
    reg  [23:0] significand_b$d;
    wire  [23:0] significand_b$q;
    reg  significand_b$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [7:0] out_distance$d;
    wire  [7:0] out_distance$q;
    reg  out_distance$clock;
    reg  [23:0] out_large$d;
    wire  [23:0] out_large$q;
    reg  out_large$clock;
    reg  [23:0] out_small$d;
    wire  [23:0] out_small$q;
    reg  out_small$clock;
    // Local signals
    reg  [30:0] magnitude_a;
    reg  [30:0] magnitude_b;
    reg  at_least;
    reg  [7:0] exponent_a;
    reg  [7:0] exponent_b;
    reg  [22:0] fraction_a;
    reg  [22:0] fraction_b;
    reg  a_special;
    reg  b_special;
    reg  unlike;
    reg  [7:0] shift_x;
    reg  [7:0] shift_y;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$0$unpack$a_is_large a_is_large(
        .d(a_is_large$d),
        .q(a_is_large$q),
        .clock(a_is_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$unpack$a_is_small a_is_small(
        .d(a_is_small$d),
        .q(a_is_small$q),
        .clock(a_is_small$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$unpack$held_kind held_kind(
        .d(held_kind$d),
        .q(held_kind$q),
        .clock(held_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$unpack$sign_a sign_a(
        .d(sign_a$d),
        .q(sign_a$q),
        .clock(sign_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$unpack$sign_b sign_b(
        .d(sign_b$d),
        .q(sign_b$q),
        .clock(sign_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$unpack$shift_a shift_a(
        .d(shift_a$d),
        .q(shift_a$q),
        .clock(shift_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$unpack$shift_b shift_b(
        .d(shift_b$d),
        .q(shift_b$q),
        .clock(shift_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$unpack$significand_a significand_a(
        .d(significand_a$d),
        .q(significand_a$q),
        .clock(significand_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$unpack$significand_b significand_b(
        .d(significand_b$d),
        .q(significand_b$q),
        .clock(significand_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$unpack$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$unpack$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$unpack$out_distance out_distance(
        .d(out_distance$d),
        .q(out_distance$q),
        .clock(out_distance$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$unpack$out_large out_large(
        .d(out_large$d),
        .q(out_large$q),
        .clock(out_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$0$unpack$out_small out_small(
        .d(out_small$d),
        .q(out_small$q),
        .clock(out_small$clock)
    );
    // Update code
    always @(*) begin
        a_is_large$clock = clock;
        a_is_small$clock = clock;
        held_kind$clock = clock;
        sign_a$clock = clock;
        sign_b$clock = clock;
        shift_a$clock = clock;
        shift_b$clock = clock;
        a_is_large$d = a_is_large$q;
        a_is_small$d = a_is_small$q;
        held_kind$d = held_kind$q;
        sign_a$d = sign_a$q;
        sign_b$d = sign_b$q;
        shift_a$d = shift_a$q;
        shift_b$d = shift_b$q;
        significand_a$clock = clock;
        significand_b$clock = clock;
        significand_a$d = significand_a$q;
        significand_b$d = significand_b$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_distance$clock = clock;
        out_large$clock = clock;
        out_small$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_distance$d = out_distance$q;
        out_large$d = out_large$q;
        out_small$d = out_small$q;
        magnitude_a = a[(32'h0)+:(31)];
        magnitude_b = b[(32'h0)+:(31)];
        at_least = magnitude_a >= magnitude_b;
        a_is_large$d = at_least;
        a_is_small$d = ~at_least;
        exponent_a = a[(32'h17)+:(8)];
        exponent_b = b[(32'h17)+:(8)];
        fraction_a = a[(32'h0)+:(23)];
        fraction_b = b[(32'h0)+:(23)];
        shift_a$d = 32'h1;
        shift_b$d = 32'h1;
        significand_a$d = ((fraction_a) & 24'hffffff);
        significand_b$d = ((fraction_b) & 24'hffffff);
        if (|exponent_a) begin
            shift_a$d = exponent_a;
            significand_a$d = ((fraction_a) & 24'hffffff) | 32'h800000;
        end
        if (|exponent_b) begin
            shift_b$d = exponent_b;
            significand_b$d = ((fraction_b) & 24'hffffff) | 32'h800000;
        end
        sign_a$d = a[32'h1f];
        sign_b$d = b[32'h1f];
        unlike = a[32'h1f] ^ b[32'h1f];
        a_special = &exponent_a;
        b_special = &exponent_b;
        held_kind$d[(64'h0)+:(1)] = 1'b0;
        held_kind$d[(64'h1)+:(1)] = unlike;
        held_kind$d[(64'h2)+:(1)] = (a_special & |fraction_a) | (b_special & |fraction_b) | (a_special & b_special & unlike);
        held_kind$d[(64'h3)+:(1)] = a_special | b_special;
        out_kind$d = held_kind$q;
        out_kind$d[(64'h0)+:(1)] = sign_b$q;
        shift_x = shift_b$q;
        out_large$d = significand_b$q;
        if (a_is_large$q) begin
            out_kind$d[(64'h0)+:(1)] = sign_a$q;
            shift_x = shift_a$q;
            out_large$d = significand_a$q;
        end
        shift_y = shift_b$q;
        out_small$d = significand_b$q;
        if (a_is_small$q) begin
            shift_y = shift_a$q;
            out_small$d = significand_a$q;
        end
        out_exponent$d = shift_x;
        out_distance$d = shift_x - shift_y;
        kind = out_kind$q;
        exponent = out_exponent$q;
        distance = out_distance$q;
        larger = out_large$q;
        smaller = out_small$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$unpack
module iswitch_accel$datapath$accumulator$adders$lane$0$unpack$a_is_large(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$unpack$a_is_large
module iswitch_accel$datapath$accumulator$adders$lane$0$unpack$a_is_small(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$unpack$a_is_small
module iswitch_accel$datapath$accumulator$adders$lane$0$unpack$held_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$unpack$held_kind
module iswitch_accel$datapath$accumulator$adders$lane$0$unpack$out_distance(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$unpack$out_distance
module iswitch_accel$datapath$accumulator$adders$lane$0$unpack$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$unpack$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$0$unpack$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$unpack$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$0$unpack$out_large(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$unpack$out_large
module iswitch_accel$datapath$accumulator$adders$lane$0$unpack$out_small(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$unpack$out_small
module iswitch_accel$datapath$accumulator$adders$lane$0$unpack$shift_a(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$unpack$shift_a
module iswitch_accel$datapath$accumulator$adders$lane$0$unpack$shift_b(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$unpack$shift_b
module iswitch_accel$datapath$accumulator$adders$lane$0$unpack$sign_a(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$unpack$sign_a
module iswitch_accel$datapath$accumulator$adders$lane$0$unpack$sign_b(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$unpack$sign_b
module iswitch_accel$datapath$accumulator$adders$lane$0$unpack$significand_a(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$unpack$significand_a
module iswitch_accel$datapath$accumulator$adders$lane$0$unpack$significand_b(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$0$unpack$significand_b
module iswitch_accel$datapath$accumulator$adders$lane$1(clock,a,b,sum);
    // Module arguments
    input wire  clock;
    input wire  [31:0] a;
    input wire  [31:0] b;
    output reg  [31:0] sum;
    // Stub signals
    reg  unpack$clock;
    reg  [31:0] unpack$a;
    reg  [31:0] unpack$b;
    wire  [3:0] unpack$kind;
    wire  [7:0] unpack$exponent;
    wire  [7:0] unpack$distance;
    wire  [23:0] unpack$larger;
    wire  [23:0] unpack$smaller;
    reg  align$clock;
    reg  [3:0] align$kind_in;
    reg  [7:0] align$exponent_in;
    reg  [7:0] align$distance;
    reg  [23:0] align$larger;
    reg  [23:0] align$smaller;
    wire  [3:0] align$kind;
    wire  [7:0] align$exponent;
    wire  [27:0] align$total;
    reg  normalise$clock;
    reg  [3:0] normalise$kind_in;
    reg  [7:0] normalise$exponent_in;
    reg  [27:0] normalise$total;
    wire  [3:0] normalise$kind;
    wire  [7:0] normalise$exponent;
    wire  [26:0] normalise$fraction;
    reg  round$clock;
    reg  [3:0] round$kind;
    reg  [7:0] round$exponent;
    reg  [26:0] round$fraction;
    wire  [31:0] round$sum;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$1$unpack unpack(
        .clock(unpack$clock),
        .a(unpack$a),
        .b(unpack$b),
        .kind(unpack$kind),
        .exponent(unpack$exponent),
        .distance(unpack$distance),
        .larger(unpack$larger),
        .smaller(unpack$smaller)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$align align(
        .clock(align$clock),
        .kind_in(align$kind_in),
        .exponent_in(align$exponent_in),
        .distance(align$distance),
        .larger(align$larger),
        .smaller(align$smaller),
        .kind(align$kind),
        .exponent(align$exponent),
        .total(align$total)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$normalise normalise(
        .clock(normalise$clock),
        .kind_in(normalise$kind_in),
        .exponent_in(normalise$exponent_in),
        .total(normalise$total),
        .kind(normalise$kind),
        .exponent(normalise$exponent),
        .fraction(normalise$fraction)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$round round(
        .clock(round$clock),
        .kind(round$kind),
        .exponent(round$exponent),
        .fraction(round$fraction),
        .sum(round$sum)
    );
    // Update code
    always @(*) begin
        unpack$clock = clock;
        align$clock = clock;
        normalise$clock = clock;
        round$clock = clock;
        unpack$a = a;
        unpack$b = b;
        align$kind_in = unpack$kind;
        align$exponent_in = unpack$exponent;
        align$distance = unpack$distance;
        align$larger = unpack$larger;
        align$smaller = unpack$smaller;
        normalise$kind_in = align$kind;
        normalise$exponent_in = align$exponent;
        normalise$total = align$total;
        round$kind = normalise$kind;
        round$exponent = normalise$exponent;
        round$fraction = normalise$fraction;
        sum = round$sum;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1
module iswitch_accel$datapath$accumulator$adders$lane$1$align(clock,kind_in,exponent_in,distance,larger,smaller,kind,exponent,total);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind_in;
    input wire  [7:0] exponent_in;
    input wire  [7:0] distance;
    input wire  [23:0] larger;
    input wire  [23:0] smaller;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [27:0] total;
    // Stub signals
    reg  [3:0] aligned_kind$d;
    wire  [3:0] aligned_kind$q;
    reg  aligned_kind$clock;
    reg  [7:0] aligned_exponent$d;
    wire  [7:0] aligned_exponent$q;
    reg  aligned_exponent$clock;
    reg  [23:0] aligned_large$d;
    wire  [23:0] aligned_large$q;
    reg  aligned_large$clock;
    reg  [26:0] aligned_small$d;
    wire  [26:0] aligned_small$q;
    reg  aligned_small$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [27:0] out_total$d;
    wire  [27:0] out_total$q;
    reg  out_total$clock;
    // Local signals
    reg  [26:0] by_0;
    reg  [26:0] by_1;
    reg  [26:0] by_3;
    reg  [26:0] by_7;
    reg  [26:0] by_15;
    reg  [26:0] by_31;
    reg  lost_1;
    reg  lost_3;
    reg  lost_7;
    reg  lost_15;
    reg  lost_31;
    reg  all_lost;
    reg  [28:0] augend;
    reg  [28:0] addend;
    reg  [28:0] complement;
    reg  [28:0] sum;
    reg  [28:0] shifted;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$1$align$aligned_kind aligned_kind(
        .d(aligned_kind$d),
        .q(aligned_kind$q),
        .clock(aligned_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$align$aligned_exponent aligned_exponent(
        .d(aligned_exponent$d),
        .q(aligned_exponent$q),
        .clock(aligned_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$align$aligned_large aligned_large(
        .d(aligned_large$d),
        .q(aligned_large$q),
        .clock(aligned_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$align$aligned_small aligned_small(
        .d(aligned_small$d),
        .q(aligned_small$q),
        .clock(aligned_small$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$align$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$align$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$align$out_total out_total(
        .d(out_total$d),
        .q(out_total$q),
        .clock(out_total$clock)
    );
    // Update code
    always @(*) begin
        aligned_kind$clock = clock;
        aligned_exponent$clock = clock;
        aligned_large$clock = clock;
        aligned_small$clock = clock;
        aligned_kind$d = aligned_kind$q;
        aligned_exponent$d = aligned_exponent$q;
        aligned_large$d = aligned_large$q;
        aligned_small$d = aligned_small$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_total$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_total$d = out_total$q;
        by_0 = ((smaller) & 27'h7ffffff) << 32'h3;
        by_1 = by_0;
        lost_1 = 1'b0;
        if (distance[32'h0]) begin
            by_1 = by_0 >> 32'h1;
            lost_1 = by_0[32'h0];
        end
        by_3 = by_1;
        lost_3 = lost_1;
        if (distance[32'h1]) begin
            by_3 = by_1 >> 32'h2;
            lost_3 = lost_1 | |by_1[(32'h0)+:(2)];
        end
        by_7 = by_3;
        lost_7 = lost_3;
        if (distance[32'h2]) begin
            by_7 = by_3 >> 32'h4;
            lost_7 = lost_3 | |by_3[(32'h0)+:(4)];
        end
        by_15 = by_7;
        lost_15 = lost_7;
        if (distance[32'h3]) begin
            by_15 = by_7 >> 32'h8;
            lost_15 = lost_7 | |by_7[(32'h0)+:(8)];
        end
        by_31 = by_15;
        lost_31 = lost_15;
        if (distance[32'h4]) begin
            by_31 = by_15 >> 32'h10;
            lost_31 = lost_15 | |by_15[(32'h0)+:(16)];
        end
        aligned_small$d = by_31 | ((lost_31) & 27'h7ffffff);
        all_lost = |distance[(32'h5)+:(3)];
        if (all_lost) begin
            aligned_small$d = ((|smaller) & 27'h7ffffff);
        end
        aligned_kind$d = kind_in;
        aligned_exponent$d = exponent_in;
        aligned_large$d = larger;
        shifted = ((aligned_large$q) & 29'h1fffffff) << 32'h4;
        augend = shifted | 32'h1;
        addend = ((aligned_small$q) & 29'h1fffffff) << 32'h1;
        complement = addend;
        if (aligned_kind$q[(64'h1)+:(1)]) begin
            complement = ~addend;
        end
        sum = augend + complement;
        out_total$d = sum[(32'h1)+:(28)];
        out_kind$d = aligned_kind$q;
        out_exponent$d = aligned_exponent$q;
        kind = out_kind$q;
        exponent = out_exponent$q;
        total = out_total$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$align
module iswitch_accel$datapath$accumulator$adders$lane$1$align$aligned_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$align$aligned_exponent
module iswitch_accel$datapath$accumulator$adders$lane$1$align$aligned_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$align$aligned_kind
module iswitch_accel$datapath$accumulator$adders$lane$1$align$aligned_large(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$align$aligned_large
module iswitch_accel$datapath$accumulator$adders$lane$1$align$aligned_small(d,q,clock);
    // Module arguments
    input wire  [26:0] d;
    output reg  [26:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 27'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$align$aligned_small
module iswitch_accel$datapath$accumulator$adders$lane$1$align$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$align$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$1$align$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$align$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$1$align$out_total(d,q,clock);
    // Module arguments
    input wire  [27:0] d;
    output reg  [27:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 28'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$align$out_total
module iswitch_accel$datapath$accumulator$adders$lane$1$normalise(clock,kind_in,exponent_in,total,kind,exponent,fraction);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind_in;
    input wire  [7:0] exponent_in;
    input wire  [27:0] total;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [26:0] fraction;
    // Stub signals
    reg  [3:0] counted_kind$d;
    wire  [3:0] counted_kind$q;
    reg  counted_kind$clock;
    reg  [7:0] counted_exponent$d;
    wire  [7:0] counted_exponent$q;
    reg  counted_exponent$clock;
    reg  [27:0] counted_total$d;
    wire  [27:0] counted_total$q;
    reg  counted_total$clock;
    reg  [4:0] shift$d;
    wire  [4:0] shift$q;
    reg  shift$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [26:0] out_fraction$d;
    wire  [26:0] out_fraction$q;
    reg  out_fraction$clock;
    // Local signals
    reg  [27:0] padded;
    reg  [3:0] group$0;
    reg  [3:0] group$1;
    reg  [3:0] group$2;
    reg  [3:0] group$3;
    reg  [3:0] group$4;
    reg  [3:0] group$5;
    reg  [3:0] group$6;
    reg  [4:0] within$0;
    reg  [4:0] within$1;
    reg  [4:0] within$2;
    reg  [4:0] within$3;
    reg  [4:0] within$4;
    reg  [4:0] within$5;
    reg  [4:0] within$6;
    reg  [4:0] groups_before;
    reg  [4:0] zeros_within;
    reg  [4:0] zeros;
    reg  [7:0] wide_zeros;
    reg  [7:0] most;
    reg  [26:0] by_0;
    reg  [26:0] by_1;
    reg  [26:0] by_3;
    reg  [26:0] by_7;
    reg  [26:0] by_15;
    reg  [26:0] by_31;
    reg  [7:0] wide_shift;
    reg  lowest;
    reg  [26:0] carried;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$1$normalise$counted_kind counted_kind(
        .d(counted_kind$d),
        .q(counted_kind$q),
        .clock(counted_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$normalise$counted_exponent counted_exponent(
        .d(counted_exponent$d),
        .q(counted_exponent$q),
        .clock(counted_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$normalise$counted_total counted_total(
        .d(counted_total$d),
        .q(counted_total$q),
        .clock(counted_total$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$normalise$shift shift(
        .d(shift$d),
        .q(shift$q),
        .clock(shift$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$normalise$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$normalise$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$normalise$out_fraction out_fraction(
        .d(out_fraction$d),
        .q(out_fraction$q),
        .clock(out_fraction$clock)
    );
    // Update code
    always @(*) begin
        counted_kind$clock = clock;
        counted_exponent$clock = clock;
        counted_total$clock = clock;
        shift$clock = clock;
        counted_kind$d = counted_kind$q;
        counted_exponent$d = counted_exponent$q;
        counted_total$d = counted_total$q;
        shift$d = shift$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_fraction$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_fraction$d = out_fraction$q;
        padded = total << 32'h1;
        groups_before = 32'h1c;
        zeros_within = 32'h3;
        group$0 = padded[(32'h4 * 0)+:(4)];
        within$0 = 32'h3;
        if (group$0[32'h1]) begin
            within$0 = 32'h2;
        end
        if (group$0[32'h2]) begin
            within$0 = 32'h1;
        end
        if (group$0[32'h3]) begin
            within$0 = 32'h0;
        end
        if (|group$0) begin
            groups_before = (32'h4 * (32'h6 - 0));
            zeros_within = within$0;
        end
        group$1 = padded[(32'h4 * 1)+:(4)];
        within$1 = 32'h3;
        if (group$1[32'h1]) begin
            within$1 = 32'h2;
        end
        if (group$1[32'h2]) begin
            within$1 = 32'h1;
        end
        if (group$1[32'h3]) begin
            within$1 = 32'h0;
        end
        if (|group$1) begin
            groups_before = (32'h4 * (32'h6 - 1));
            zeros_within = within$1;
        end
        group$2 = padded[(32'h4 * 2)+:(4)];
        within$2 = 32'h3;
        if (group$2[32'h1]) begin
            within$2 = 32'h2;
        end
        if (group$2[32'h2]) begin
            within$2 = 32'h1;
        end
        if (group$2[32'h3]) begin
            within$2 = 32'h0;
        end
        if (|group$2) begin
            groups_before = (32'h4 * (32'h6 - 2));
            zeros_within = within$2;
        end
        group$3 = padded[(32'h4 * 3)+:(4)];
        within$3 = 32'h3;
        if (group$3[32'h1]) begin
            within$3 = 32'h2;
        end
        if (group$3[32'h2]) begin
            within$3 = 32'h1;
        end
        if (group$3[32'h3]) begin
            within$3 = 32'h0;
        end
        if (|group$3) begin
            groups_before = (32'h4 * (32'h6 - 3));
            zeros_within = within$3;
        end
        group$4 = padded[(32'h4 * 4)+:(4)];
        within$4 = 32'h3;
        if (group$4[32'h1]) begin
            within$4 = 32'h2;
        end
        if (group$4[32'h2]) begin
            within$4 = 32'h1;
        end
        if (group$4[32'h3]) begin
            within$4 = 32'h0;
        end
        if (|group$4) begin
            groups_before = (32'h4 * (32'h6 - 4));
            zeros_within = within$4;
        end
        group$5 = padded[(32'h4 * 5)+:(4)];
        within$5 = 32'h3;
        if (group$5[32'h1]) begin
            within$5 = 32'h2;
        end
        if (group$5[32'h2]) begin
            within$5 = 32'h1;
        end
        if (group$5[32'h3]) begin
            within$5 = 32'h0;
        end
        if (|group$5) begin
            groups_before = (32'h4 * (32'h6 - 5));
            zeros_within = within$5;
        end
        group$6 = padded[(32'h4 * 6)+:(4)];
        within$6 = 32'h3;
        if (group$6[32'h1]) begin
            within$6 = 32'h2;
        end
        if (group$6[32'h2]) begin
            within$6 = 32'h1;
        end
        if (group$6[32'h3]) begin
            within$6 = 32'h0;
        end
        if (|group$6) begin
            groups_before = (32'h4 * (32'h6 - 6));
            zeros_within = within$6;
        end
        zeros = groups_before | zeros_within;
        most = exponent_in - 32'h1;
        wide_zeros = ((zeros) & 8'hff);
        shift$d = zeros;
        if (wide_zeros > most) begin
            shift$d = most[(32'h0)+:(5)];
        end
        counted_kind$d = kind_in;
        counted_exponent$d = exponent_in;
        counted_total$d = total;
        by_0 = counted_total$q[(32'h0)+:(27)];
        by_1 = by_0;
        if (shift$q[32'h0]) begin
            by_1 = by_0 << 32'h1;
        end
        by_3 = by_1;
        if (shift$q[32'h1]) begin
            by_3 = by_1 << 32'h2;
        end
        by_7 = by_3;
        if (shift$q[32'h2]) begin
            by_7 = by_3 << 32'h4;
        end
        by_15 = by_7;
        if (shift$q[32'h3]) begin
            by_15 = by_7 << 32'h8;
        end
        by_31 = by_15;
        if (shift$q[32'h4]) begin
            by_31 = by_15 << 32'h10;
        end
        wide_shift = ((shift$q) & 8'hff);
        lowest = counted_total$q[(32'h0)+:(1)];
        carried = counted_total$q[(32'h1)+:(27)];
        out_fraction$d = by_31;
        out_exponent$d = counted_exponent$q - wide_shift;
        if (counted_total$q[32'h1b]) begin
            out_fraction$d = carried | ((lowest) & 27'h7ffffff);
            out_exponent$d = counted_exponent$q + 32'h1;
        end
        out_kind$d = counted_kind$q;
        if (counted_kind$q[(64'h1)+:(1)] & ~|counted_total$q) begin
            out_kind$d[(64'h0)+:(1)] = 1'b0;
        end
        kind = out_kind$q;
        exponent = out_exponent$q;
        fraction = out_fraction$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$normalise
module iswitch_accel$datapath$accumulator$adders$lane$1$normalise$counted_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$normalise$counted_exponent
module iswitch_accel$datapath$accumulator$adders$lane$1$normalise$counted_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$normalise$counted_kind
module iswitch_accel$datapath$accumulator$adders$lane$1$normalise$counted_total(d,q,clock);
    // Module arguments
    input wire  [27:0] d;
    output reg  [27:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 28'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$normalise$counted_total
module iswitch_accel$datapath$accumulator$adders$lane$1$normalise$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$normalise$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$1$normalise$out_fraction(d,q,clock);
    // Module arguments
    input wire  [26:0] d;
    output reg  [26:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 27'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$normalise$out_fraction
module iswitch_accel$datapath$accumulator$adders$lane$1$normalise$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$normalise$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$1$normalise$shift(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$normalise$shift
module iswitch_accel$datapath$accumulator$adders$lane$1$round(clock,kind,exponent,fraction,sum);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind;
    input wire  [7:0] exponent;
    input wire  [26:0] fraction;
    output reg  [31:0] sum;
    // Stub signals
    reg  [31:0] out_sum$d;
    wire  [31:0] out_sum$q;
    reg  out_sum$clock;
    // Local signals
    reg  [22:0] kept;
    reg  [30:0] field;
    reg  [30:0] truncated;
    reg  up;
    reg  [30:0] rounded;
    reg  largest;
    reg  overflows;
    reg  [31:0] magnitude;
    reg  [31:0] sign;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$1$round$out_sum out_sum(
        .d(out_sum$d),
        .q(out_sum$q),
        .clock(out_sum$clock)
    );
    // Update code
    always @(*) begin
        out_sum$clock = clock;
        out_sum$d = out_sum$q;
        kept = fraction[(32'h3)+:(23)];
        field = ((exponent) & 31'h7fffffff) << 32'h17;
        truncated = ((kept) & 31'h7fffffff);
        if (fraction[32'h1a]) begin
            truncated = ((kept) & 31'h7fffffff) | field;
        end
        up = fraction[32'h2] & (fraction[32'h3] | fraction[32'h1] | fraction[32'h0]);
        rounded = truncated + ((up) & 31'h7fffffff);
        largest = (exponent == 32'hfe) & &kept;
        overflows = fraction[32'h1a] & (&exponent | (largest & up));
        magnitude = ((rounded) & 32'hffffffff);
        if (overflows | kind[(64'h3)+:(1)]) begin
            magnitude = 32'h7f800000;
        end
        sign = ((kind[(64'h0)+:(1)]) & 32'hffffffff) << 32'h1f;
        out_sum$d = magnitude | sign;
        if (kind[(64'h2)+:(1)]) begin
            out_sum$d = 32'h7fc00000;
        end
        sum = out_sum$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$round
module iswitch_accel$datapath$accumulator$adders$lane$1$round$out_sum(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$round$out_sum
module iswitch_accel$datapath$accumulator$adders$lane$1$unpack(clock,a,b,kind,exponent,distance,larger,smaller);
    // Module arguments
    input wire  clock;
    input wire  [31:0] a;
    input wire  [31:0] b;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [7:0] distance;
    output reg  [23:0] larger;
    output reg  [23:0] smaller;
    // Stub signals
    reg  a_is_large$d;
    wire  a_is_large$q;
    reg  a_is_large$clock;
    reg  a_is_small$d;
    wire  a_is_small$q;
    reg  a_is_small$clock;
    reg  [3:0] held_kind$d;
    wire  [3:0] held_kind$q;
    reg  held_kind$clock;
    reg  sign_a$d;
    wire  sign_a$q;
    reg  sign_a$clock;
    reg  sign_b$d;
    wire  sign_b$q;
    reg  sign_b$clock;
    reg  [7:0] shift_a$d;
    wire  [7:0] shift_a$q;
    reg  shift_a$clock;
    reg  [7:0] shift_b$d;
    wire  [7:0] shift_b$q;
    reg  shift_b$clock;
    reg  [23:0] significand_a$d;
    wire  [23:0] significand_a$q;
    reg  significand_a$clock;
    reg  [23:0] significand_b$d;
    wire  [23:0] significand_b$q;
    reg  significand_b$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [7:0] out_distance$d;
    wire  [7:0] out_distance$q;
    reg  out_distance$clock;
    reg  [23:0] out_large$d;
    wire  [23:0] out_large$q;
    reg  out_large$clock;
    reg  [23:0] out_small$d;
    wire  [23:0] out_small$q;
    reg  out_small$clock;
    // Local signals
    reg  [30:0] magnitude_a;
    reg  [30:0] magnitude_b;
    reg  at_least;
    reg  [7:0] exponent_a;
    reg  [7:0] exponent_b;
    reg  [22:0] fraction_a;
    reg  [22:0] fraction_b;
    reg  a_special;
    reg  b_special;
    reg  unlike;
    reg  [7:0] shift_x;
    reg  [7:0] shift_y;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$1$unpack$a_is_large a_is_large(
        .d(a_is_large$d),
        .q(a_is_large$q),
        .clock(a_is_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$unpack$a_is_small a_is_small(
        .d(a_is_small$d),
        .q(a_is_small$q),
        .clock(a_is_small$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$unpack$held_kind held_kind(
        .d(held_kind$d),
        .q(held_kind$q),
        .clock(held_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$unpack$sign_a sign_a(
        .d(sign_a$d),
        .q(sign_a$q),
        .clock(sign_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$unpack$sign_b sign_b(
        .d(sign_b$d),
        .q(sign_b$q),
        .clock(sign_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$unpack$shift_a shift_a(
        .d(shift_a$d),
        .q(shift_a$q),
        .clock(shift_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$unpack$shift_b shift_b(
        .d(shift_b$d),
        .q(shift_b$q),
        .clock(shift_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$unpack$significand_a significand_a(
        .d(significand_a$d),
        .q(significand_a$q),
        .clock(significand_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$unpack$significand_b significand_b(
        .d(significand_b$d),
        .q(significand_b$q),
        .clock(significand_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$unpack$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$unpack$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$unpack$out_distance out_distance(
        .d(out_distance$d),
        .q(out_distance$q),
        .clock(out_distance$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$unpack$out_large out_large(
        .d(out_large$d),
        .q(out_large$q),
        .clock(out_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$1$unpack$out_small out_small(
        .d(out_small$d),
        .q(out_small$q),
        .clock(out_small$clock)
    );
    // Update code
    always @(*) begin
        a_is_large$clock = clock;
        a_is_small$clock = clock;
        held_kind$clock = clock;
        sign_a$clock = clock;
        sign_b$clock = clock;
        shift_a$clock = clock;
        shift_b$clock = clock;
        a_is_large$d = a_is_large$q;
        a_is_small$d = a_is_small$q;
        held_kind$d = held_kind$q;
        sign_a$d = sign_a$q;
        sign_b$d = sign_b$q;
        shift_a$d = shift_a$q;
        shift_b$d = shift_b$q;
        significand_a$clock = clock;
        significand_b$clock = clock;
        significand_a$d = significand_a$q;
        significand_b$d = significand_b$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_distance$clock = clock;
        out_large$clock = clock;
        out_small$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_distance$d = out_distance$q;
        out_large$d = out_large$q;
        out_small$d = out_small$q;
        magnitude_a = a[(32'h0)+:(31)];
        magnitude_b = b[(32'h0)+:(31)];
        at_least = magnitude_a >= magnitude_b;
        a_is_large$d = at_least;
        a_is_small$d = ~at_least;
        exponent_a = a[(32'h17)+:(8)];
        exponent_b = b[(32'h17)+:(8)];
        fraction_a = a[(32'h0)+:(23)];
        fraction_b = b[(32'h0)+:(23)];
        shift_a$d = 32'h1;
        shift_b$d = 32'h1;
        significand_a$d = ((fraction_a) & 24'hffffff);
        significand_b$d = ((fraction_b) & 24'hffffff);
        if (|exponent_a) begin
            shift_a$d = exponent_a;
            significand_a$d = ((fraction_a) & 24'hffffff) | 32'h800000;
        end
        if (|exponent_b) begin
            shift_b$d = exponent_b;
            significand_b$d = ((fraction_b) & 24'hffffff) | 32'h800000;
        end
        sign_a$d = a[32'h1f];
        sign_b$d = b[32'h1f];
        unlike = a[32'h1f] ^ b[32'h1f];
        a_special = &exponent_a;
        b_special = &exponent_b;
        held_kind$d[(64'h0)+:(1)] = 1'b0;
        held_kind$d[(64'h1)+:(1)] = unlike;
        held_kind$d[(64'h2)+:(1)] = (a_special & |fraction_a) | (b_special & |fraction_b) | (a_special & b_special & unlike);
        held_kind$d[(64'h3)+:(1)] = a_special | b_special;
        out_kind$d = held_kind$q;
        out_kind$d[(64'h0)+:(1)] = sign_b$q;
        shift_x = shift_b$q;
        out_large$d = significand_b$q;
        if (a_is_large$q) begin
            out_kind$d[(64'h0)+:(1)] = sign_a$q;
            shift_x = shift_a$q;
            out_large$d = significand_a$q;
        end
        shift_y = shift_b$q;
        out_small$d = significand_b$q;
        if (a_is_small$q) begin
            shift_y = shift_a$q;
            out_small$d = significand_a$q;
        end
        out_exponent$d = shift_x;
        out_distance$d = shift_x - shift_y;
        kind = out_kind$q;
        exponent = out_exponent$q;
        distance = out_distance$q;
        larger = out_large$q;
        smaller = out_small$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$unpack
module iswitch_accel$datapath$accumulator$adders$lane$1$unpack$a_is_large(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$unpack$a_is_large
module iswitch_accel$datapath$accumulator$adders$lane$1$unpack$a_is_small(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$unpack$a_is_small
module iswitch_accel$datapath$accumulator$adders$lane$1$unpack$held_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$unpack$held_kind
module iswitch_accel$datapath$accumulator$adders$lane$1$unpack$out_distance(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$unpack$out_distance
module iswitch_accel$datapath$accumulator$adders$lane$1$unpack$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$unpack$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$1$unpack$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$unpack$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$1$unpack$out_large(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$unpack$out_large
module iswitch_accel$datapath$accumulator$adders$lane$1$unpack$out_small(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$unpack$out_small
module iswitch_accel$datapath$accumulator$adders$lane$1$unpack$shift_a(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$unpack$shift_a
module iswitch_accel$datapath$accumulator$adders$lane$1$unpack$shift_b(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$unpack$shift_b
module iswitch_accel$datapath$accumulator$adders$lane$1$unpack$sign_a(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$unpack$sign_a
module iswitch_accel$datapath$accumulator$adders$lane$1$unpack$sign_b(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$unpack$sign_b
module iswitch_accel$datapath$accumulator$adders$lane$1$unpack$significand_a(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$unpack$significand_a
module iswitch_accel$datapath$accumulator$adders$lane$1$unpack$significand_b(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$1$unpack$significand_b
module iswitch_accel$datapath$accumulator$adders$lane$2(clock,a,b,sum);
    // Module arguments
    input wire  clock;
    input wire  [31:0] a;
    input wire  [31:0] b;
    output reg  [31:0] sum;
    // Stub signals
    reg  unpack$clock;
    reg  [31:0] unpack$a;
    reg  [31:0] unpack$b;
    wire  [3:0] unpack$kind;
    wire  [7:0] unpack$exponent;
    wire  [7:0] unpack$distance;
    wire  [23:0] unpack$larger;
    wire  [23:0] unpack$smaller;
    reg  align$clock;
    reg  [3:0] align$kind_in;
    reg  [7:0] align$exponent_in;
    reg  [7:0] align$distance;
    reg  [23:0] align$larger;
    reg  [23:0] align$smaller;
    wire  [3:0] align$kind;
    wire  [7:0] align$exponent;
    wire  [27:0] align$total;
    reg  normalise$clock;
    reg  [3:0] normalise$kind_in;
    reg  [7:0] normalise$exponent_in;
    reg  [27:0] normalise$total;
    wire  [3:0] normalise$kind;
    wire  [7:0] normalise$exponent;
    wire  [26:0] normalise$fraction;
    reg  round$clock;
    reg  [3:0] round$kind;
    reg  [7:0] round$exponent;
    reg  [26:0] round$fraction;
    wire  [31:0] round$sum;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$2$unpack unpack(
        .clock(unpack$clock),
        .a(unpack$a),
        .b(unpack$b),
        .kind(unpack$kind),
        .exponent(unpack$exponent),
        .distance(unpack$distance),
        .larger(unpack$larger),
        .smaller(unpack$smaller)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$align align(
        .clock(align$clock),
        .kind_in(align$kind_in),
        .exponent_in(align$exponent_in),
        .distance(align$distance),
        .larger(align$larger),
        .smaller(align$smaller),
        .kind(align$kind),
        .exponent(align$exponent),
        .total(align$total)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$normalise normalise(
        .clock(normalise$clock),
        .kind_in(normalise$kind_in),
        .exponent_in(normalise$exponent_in),
        .total(normalise$total),
        .kind(normalise$kind),
        .exponent(normalise$exponent),
        .fraction(normalise$fraction)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$round round(
        .clock(round$clock),
        .kind(round$kind),
        .exponent(round$exponent),
        .fraction(round$fraction),
        .sum(round$sum)
    );
    // Update code
    always @(*) begin
        unpack$clock = clock;
        align$clock = clock;
        normalise$clock = clock;
        round$clock = clock;
        unpack$a = a;
        unpack$b = b;
        align$kind_in = unpack$kind;
        align$exponent_in = unpack$exponent;
        align$distance = unpack$distance;
        align$larger = unpack$larger;
        align$smaller = unpack$smaller;
        normalise$kind_in = align$kind;
        normalise$exponent_in = align$exponent;
        normalise$total = align$total;
        round$kind = normalise$kind;
        round$exponent = normalise$exponent;
        round$fraction = normalise$fraction;
        sum = round$sum;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2
module iswitch_accel$datapath$accumulator$adders$lane$2$align(clock,kind_in,exponent_in,distance,larger,smaller,kind,exponent,total);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind_in;
    input wire  [7:0] exponent_in;
    input wire  [7:0] distance;
    input wire  [23:0] larger;
    input wire  [23:0] smaller;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [27:0] total;
    // Stub signals
    reg  [3:0] aligned_kind$d;
    wire  [3:0] aligned_kind$q;
    reg  aligned_kind$clock;
    reg  [7:0] aligned_exponent$d;
    wire  [7:0] aligned_exponent$q;
    reg  aligned_exponent$clock;
    reg  [23:0] aligned_large$d;
    wire  [23:0] aligned_large$q;
    reg  aligned_large$clock;
    reg  [26:0] aligned_small$d;
    wire  [26:0] aligned_small$q;
    reg  aligned_small$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [27:0] out_total$d;
    wire  [27:0] out_total$q;
    reg  out_total$clock;
    // Local signals
    reg  [26:0] by_0;
    reg  [26:0] by_1;
    reg  [26:0] by_3;
    reg  [26:0] by_7;
    reg  [26:0] by_15;
    reg  [26:0] by_31;
    reg  lost_1;
    reg  lost_3;
    reg  lost_7;
    reg  lost_15;
    reg  lost_31;
    reg  all_lost;
    reg  [28:0] augend;
    reg  [28:0] addend;
    reg  [28:0] complement;
    reg  [28:0] sum;
    reg  [28:0] shifted;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$2$align$aligned_kind aligned_kind(
        .d(aligned_kind$d),
        .q(aligned_kind$q),
        .clock(aligned_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$align$aligned_exponent aligned_exponent(
        .d(aligned_exponent$d),
        .q(aligned_exponent$q),
        .clock(aligned_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$align$aligned_large aligned_large(
        .d(aligned_large$d),
        .q(aligned_large$q),
        .clock(aligned_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$align$aligned_small aligned_small(
        .d(aligned_small$d),
        .q(aligned_small$q),
        .clock(aligned_small$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$align$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$align$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$align$out_total out_total(
        .d(out_total$d),
        .q(out_total$q),
        .clock(out_total$clock)
    );
    // Update code
    always @(*) begin
        aligned_kind$clock = clock;
        aligned_exponent$clock = clock;
        aligned_large$clock = clock;
        aligned_small$clock = clock;
        aligned_kind$d = aligned_kind$q;
        aligned_exponent$d = aligned_exponent$q;
        aligned_large$d = aligned_large$q;
        aligned_small$d = aligned_small$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_total$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_total$d = out_total$q;
        by_0 = ((smaller) & 27'h7ffffff) << 32'h3;
        by_1 = by_0;
        lost_1 = 1'b0;
        if (distance[32'h0]) begin
            by_1 = by_0 >> 32'h1;
            lost_1 = by_0[32'h0];
        end
        by_3 = by_1;
        lost_3 = lost_1;
        if (distance[32'h1]) begin
            by_3 = by_1 >> 32'h2;
            lost_3 = lost_1 | |by_1[(32'h0)+:(2)];
        end
        by_7 = by_3;
        lost_7 = lost_3;
        if (distance[32'h2]) begin
            by_7 = by_3 >> 32'h4;
            lost_7 = lost_3 | |by_3[(32'h0)+:(4)];
        end
        by_15 = by_7;
        lost_15 = lost_7;
        if (distance[32'h3]) begin
            by_15 = by_7 >> 32'h8;
            lost_15 = lost_7 | |by_7[(32'h0)+:(8)];
        end
        by_31 = by_15;
        lost_31 = lost_15;
        if (distance[32'h4]) begin
            by_31 = by_15 >> 32'h10;
            lost_31 = lost_15 | |by_15[(32'h0)+:(16)];
        end
        aligned_small$d = by_31 | ((lost_31) & 27'h7ffffff);
        all_lost = |distance[(32'h5)+:(3)];
        if (all_lost) begin
            aligned_small$d = ((|smaller) & 27'h7ffffff);
        end
        aligned_kind$d = kind_in;
        aligned_exponent$d = exponent_in;
        aligned_large$d = larger;
        shifted = ((aligned_large$q) & 29'h1fffffff) << 32'h4;
        augend = shifted | 32'h1;
        addend = ((aligned_small$q) & 29'h1fffffff) << 32'h1;
        complement = addend;
        if (aligned_kind$q[(64'h1)+:(1)]) begin
            complement = ~addend;
        end
        sum = augend + complement;
        out_total$d = sum[(32'h1)+:(28)];
        out_kind$d = aligned_kind$q;
        out_exponent$d = aligned_exponent$q;
        kind = out_kind$q;
        exponent = out_exponent$q;
        total = out_total$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$align
module iswitch_accel$datapath$accumulator$adders$lane$2$align$aligned_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$align$aligned_exponent
module iswitch_accel$datapath$accumulator$adders$lane$2$align$aligned_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$align$aligned_kind
module iswitch_accel$datapath$accumulator$adders$lane$2$align$aligned_large(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$align$aligned_large
module iswitch_accel$datapath$accumulator$adders$lane$2$align$aligned_small(d,q,clock);
    // Module arguments
    input wire  [26:0] d;
    output reg  [26:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 27'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$align$aligned_small
module iswitch_accel$datapath$accumulator$adders$lane$2$align$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$align$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$2$align$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$align$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$2$align$out_total(d,q,clock);
    // Module arguments
    input wire  [27:0] d;
    output reg  [27:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 28'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$align$out_total
module iswitch_accel$datapath$accumulator$adders$lane$2$normalise(clock,kind_in,exponent_in,total,kind,exponent,fraction);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind_in;
    input wire  [7:0] exponent_in;
    input wire  [27:0] total;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [26:0] fraction;
    // Stub signals
    reg  [3:0] counted_kind$d;
    wire  [3:0] counted_kind$q;
    reg  counted_kind$clock;
    reg  [7:0] counted_exponent$d;
    wire  [7:0] counted_exponent$q;
    reg  counted_exponent$clock;
    reg  [27:0] counted_total$d;
    wire  [27:0] counted_total$q;
    reg  counted_total$clock;
    reg  [4:0] shift$d;
    wire  [4:0] shift$q;
    reg  shift$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [26:0] out_fraction$d;
    wire  [26:0] out_fraction$q;
    reg  out_fraction$clock;
    // Local signals
    reg  [27:0] padded;
    reg  [3:0] group$0;
    reg  [3:0] group$1;
    reg  [3:0] group$2;
    reg  [3:0] group$3;
    reg  [3:0] group$4;
    reg  [3:0] group$5;
    reg  [3:0] group$6;
    reg  [4:0] within$0;
    reg  [4:0] within$1;
    reg  [4:0] within$2;
    reg  [4:0] within$3;
    reg  [4:0] within$4;
    reg  [4:0] within$5;
    reg  [4:0] within$6;
    reg  [4:0] groups_before;
    reg  [4:0] zeros_within;
    reg  [4:0] zeros;
    reg  [7:0] wide_zeros;
    reg  [7:0] most;
    reg  [26:0] by_0;
    reg  [26:0] by_1;
    reg  [26:0] by_3;
    reg  [26:0] by_7;
    reg  [26:0] by_15;
    reg  [26:0] by_31;
    reg  [7:0] wide_shift;
    reg  lowest;
    reg  [26:0] carried;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$2$normalise$counted_kind counted_kind(
        .d(counted_kind$d),
        .q(counted_kind$q),
        .clock(counted_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$normalise$counted_exponent counted_exponent(
        .d(counted_exponent$d),
        .q(counted_exponent$q),
        .clock(counted_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$normalise$counted_total counted_total(
        .d(counted_total$d),
        .q(counted_total$q),
        .clock(counted_total$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$normalise$shift shift(
        .d(shift$d),
        .q(shift$q),
        .clock(shift$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$normalise$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$normalise$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$normalise$out_fraction out_fraction(
        .d(out_fraction$d),
        .q(out_fraction$q),
        .clock(out_fraction$clock)
    );
    // Update code
    always @(*) begin
        counted_kind$clock = clock;
        counted_exponent$clock = clock;
        counted_total$clock = clock;
        shift$clock = clock;
        counted_kind$d = counted_kind$q;
        counted_exponent$d = counted_exponent$q;
        counted_total$d = counted_total$q;
        shift$d = shift$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_fraction$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_fraction$d = out_fraction$q;
        padded = total << 32'h1;
        groups_before = 32'h1c;
        zeros_within = 32'h3;
        group$0 = padded[(32'h4 * 0)+:(4)];
        within$0 = 32'h3;
        if (group$0[32'h1]) begin
            within$0 = 32'h2;
        end
        if (group$0[32'h2]) begin
            within$0 = 32'h1;
        end
        if (group$0[32'h3]) begin
            within$0 = 32'h0;
        end
        if (|group$0) begin
            groups_before = (32'h4 * (32'h6 - 0));
            zeros_within = within$0;
        end
        group$1 = padded[(32'h4 * 1)+:(4)];
        within$1 = 32'h3;
        if (group$1[32'h1]) begin
            within$1 = 32'h2;
        end
        if (group$1[32'h2]) begin
            within$1 = 32'h1;
        end
        if (group$1[32'h3]) begin
            within$1 = 32'h0;
        end
        if (|group$1) begin
            groups_before = (32'h4 * (32'h6 - 1));
            zeros_within = within$1;
        end
        group$2 = padded[(32'h4 * 2)+:(4)];
        within$2 = 32'h3;
        if (group$2[32'h1]) begin
            within$2 = 32'h2;
        end
        if (group$2[32'h2]) begin
            within$2 = 32'h1;
        end
        if (group$2[32'h3]) begin
            within$2 = 32'h0;
        end
        if (|group$2) begin
            groups_before = (32'h4 * (32'h6 - 2));
            zeros_within = within$2;
        end
        group$3 = padded[(32'h4 * 3)+:(4)];
        within$3 = 32'h3;
        if (group$3[32'h1]) begin
            within$3 = 32'h2;
        end
        if (group$3[32'h2]) begin
            within$3 = 32'h1;
        end
        if (group$3[32'h3]) begin
            within$3 = 32'h0;
        end
        if (|group$3) begin
            groups_before = (32'h4 * (32'h6 - 3));
            zeros_within = within$3;
        end
        group$4 = padded[(32'h4 * 4)+:(4)];
        within$4 = 32'h3;
        if (group$4[32'h1]) begin
            within$4 = 32'h2;
        end
        if (group$4[32'h2]) begin
            within$4 = 32'h1;
        end
        if (group$4[32'h3]) begin
            within$4 = 32'h0;
        end
        if (|group$4) begin
            groups_before = (32'h4 * (32'h6 - 4));
            zeros_within = within$4;
        end
        group$5 = padded[(32'h4 * 5)+:(4)];
        within$5 = 32'h3;
        if (group$5[32'h1]) begin
            within$5 = 32'h2;
        end
        if (group$5[32'h2]) begin
            within$5 = 32'h1;
        end
        if (group$5[32'h3]) begin
            within$5 = 32'h0;
        end
        if (|group$5) begin
            groups_before = (32'h4 * (32'h6 - 5));
            zeros_within = within$5;
        end
        group$6 = padded[(32'h4 * 6)+:(4)];
        within$6 = 32'h3;
        if (group$6[32'h1]) begin
            within$6 = 32'h2;
        end
        if (group$6[32'h2]) begin
            within$6 = 32'h1;
        end
        if (group$6[32'h3]) begin
            within$6 = 32'h0;
        end
        if (|group$6) begin
            groups_before = (32'h4 * (32'h6 - 6));
            zeros_within = within$6;
        end
        zeros = groups_before | zeros_within;
        most = exponent_in - 32'h1;
        wide_zeros = ((zeros) & 8'hff);
        shift$d = zeros;
        if (wide_zeros > most) begin
            shift$d = most[(32'h0)+:(5)];
        end
        counted_kind$d = kind_in;
        counted_exponent$d = exponent_in;
        counted_total$d = total;
        by_0 = counted_total$q[(32'h0)+:(27)];
        by_1 = by_0;
        if (shift$q[32'h0]) begin
            by_1 = by_0 << 32'h1;
        end
        by_3 = by_1;
        if (shift$q[32'h1]) begin
            by_3 = by_1 << 32'h2;
        end
        by_7 = by_3;
        if (shift$q[32'h2]) begin
            by_7 = by_3 << 32'h4;
        end
        by_15 = by_7;
        if (shift$q[32'h3]) begin
            by_15 = by_7 << 32'h8;
        end
        by_31 = by_15;
        if (shift$q[32'h4]) begin
            by_31 = by_15 << 32'h10;
        end
        wide_shift = ((shift$q) & 8'hff);
        lowest = counted_total$q[(32'h0)+:(1)];
        carried = counted_total$q[(32'h1)+:(27)];
        out_fraction$d = by_31;
        out_exponent$d = counted_exponent$q - wide_shift;
        if (counted_total$q[32'h1b]) begin
            out_fraction$d = carried | ((lowest) & 27'h7ffffff);
            out_exponent$d = counted_exponent$q + 32'h1;
        end
        out_kind$d = counted_kind$q;
        if (counted_kind$q[(64'h1)+:(1)] & ~|counted_total$q) begin
            out_kind$d[(64'h0)+:(1)] = 1'b0;
        end
        kind = out_kind$q;
        exponent = out_exponent$q;
        fraction = out_fraction$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$normalise
module iswitch_accel$datapath$accumulator$adders$lane$2$normalise$counted_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$normalise$counted_exponent
module iswitch_accel$datapath$accumulator$adders$lane$2$normalise$counted_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$normalise$counted_kind
module iswitch_accel$datapath$accumulator$adders$lane$2$normalise$counted_total(d,q,clock);
    // Module arguments
    input wire  [27:0] d;
    output reg  [27:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 28'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$normalise$counted_total
module iswitch_accel$datapath$accumulator$adders$lane$2$normalise$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$normalise$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$2$normalise$out_fraction(d,q,clock);
    // Module arguments
    input wire  [26:0] d;
    output reg  [26:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 27'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$normalise$out_fraction
module iswitch_accel$datapath$accumulator$adders$lane$2$normalise$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$normalise$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$2$normalise$shift(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$normalise$shift
module iswitch_accel$datapath$accumulator$adders$lane$2$round(clock,kind,exponent,fraction,sum);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind;
    input wire  [7:0] exponent;
    input wire  [26:0] fraction;
    output reg  [31:0] sum;
    // Stub signals
    reg  [31:0] out_sum$d;
    wire  [31:0] out_sum$q;
    reg  out_sum$clock;
    // Local signals
    reg  [22:0] kept;
    reg  [30:0] field;
    reg  [30:0] truncated;
    reg  up;
    reg  [30:0] rounded;
    reg  largest;
    reg  overflows;
    reg  [31:0] magnitude;
    reg  [31:0] sign;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$2$round$out_sum out_sum(
        .d(out_sum$d),
        .q(out_sum$q),
        .clock(out_sum$clock)
    );
    // Update code
    always @(*) begin
        out_sum$clock = clock;
        out_sum$d = out_sum$q;
        kept = fraction[(32'h3)+:(23)];
        field = ((exponent) & 31'h7fffffff) << 32'h17;
        truncated = ((kept) & 31'h7fffffff);
        if (fraction[32'h1a]) begin
            truncated = ((kept) & 31'h7fffffff) | field;
        end
        up = fraction[32'h2] & (fraction[32'h3] | fraction[32'h1] | fraction[32'h0]);
        rounded = truncated + ((up) & 31'h7fffffff);
        largest = (exponent == 32'hfe) & &kept;
        overflows = fraction[32'h1a] & (&exponent | (largest & up));
        magnitude = ((rounded) & 32'hffffffff);
        if (overflows | kind[(64'h3)+:(1)]) begin
            magnitude = 32'h7f800000;
        end
        sign = ((kind[(64'h0)+:(1)]) & 32'hffffffff) << 32'h1f;
        out_sum$d = magnitude | sign;
        if (kind[(64'h2)+:(1)]) begin
            out_sum$d = 32'h7fc00000;
        end
        sum = out_sum$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$round
module iswitch_accel$datapath$accumulator$adders$lane$2$round$out_sum(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$round$out_sum
module iswitch_accel$datapath$accumulator$adders$lane$2$unpack(clock,a,b,kind,exponent,distance,larger,smaller);
    // Module arguments
    input wire  clock;
    input wire  [31:0] a;
    input wire  [31:0] b;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [7:0] distance;
    output reg  [23:0] larger;
    output reg  [23:0] smaller;
    // Stub signals
    reg  a_is_large$d;
    wire  a_is_large$q;
    reg  a_is_large$clock;
    reg  a_is_small$d;
    wire  a_is_small$q;
    reg  a_is_small$clock;
    reg  [3:0] held_kind$d;
    wire  [3:0] held_kind$q;
    reg  held_kind$clock;
    reg  sign_a$d;
    wire  sign_a$q;
    reg  sign_a$clock;
    reg  sign_b$d;
    wire  sign_b$q;
    reg  sign_b$clock;
    reg  [7:0] shift_a$d;
    wire  [7:0] shift_a$q;
    reg  shift_a$clock;
    reg  [7:0] shift_b$d;
    wire  [7:0] shift_b$q;
    reg  shift_b$clock;
    reg  [23:0] significand_a$d;
    wire  [23:0] significand_a$q;
    reg  significand_a$clock;
    reg  [23:0] significand_b$d;
    wire  [23:0] significand_b$q;
    reg  significand_b$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [7:0] out_distance$d;
    wire  [7:0] out_distance$q;
    reg  out_distance$clock;
    reg  [23:0] out_large$d;
    wire  [23:0] out_large$q;
    reg  out_large$clock;
    reg  [23:0] out_small$d;
    wire  [23:0] out_small$q;
    reg  out_small$clock;
    // Local signals
    reg  [30:0] magnitude_a;
    reg  [30:0] magnitude_b;
    reg  at_least;
    reg  [7:0] exponent_a;
    reg  [7:0] exponent_b;
    reg  [22:0] fraction_a;
    reg  [22:0] fraction_b;
    reg  a_special;
    reg  b_special;
    reg  unlike;
    reg  [7:0] shift_x;
    reg  [7:0] shift_y;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$2$unpack$a_is_large a_is_large(
        .d(a_is_large$d),
        .q(a_is_large$q),
        .clock(a_is_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$unpack$a_is_small a_is_small(
        .d(a_is_small$d),
        .q(a_is_small$q),
        .clock(a_is_small$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$unpack$held_kind held_kind(
        .d(held_kind$d),
        .q(held_kind$q),
        .clock(held_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$unpack$sign_a sign_a(
        .d(sign_a$d),
        .q(sign_a$q),
        .clock(sign_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$unpack$sign_b sign_b(
        .d(sign_b$d),
        .q(sign_b$q),
        .clock(sign_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$unpack$shift_a shift_a(
        .d(shift_a$d),
        .q(shift_a$q),
        .clock(shift_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$unpack$shift_b shift_b(
        .d(shift_b$d),
        .q(shift_b$q),
        .clock(shift_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$unpack$significand_a significand_a(
        .d(significand_a$d),
        .q(significand_a$q),
        .clock(significand_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$unpack$significand_b significand_b(
        .d(significand_b$d),
        .q(significand_b$q),
        .clock(significand_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$unpack$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$unpack$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$unpack$out_distance out_distance(
        .d(out_distance$d),
        .q(out_distance$q),
        .clock(out_distance$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$unpack$out_large out_large(
        .d(out_large$d),
        .q(out_large$q),
        .clock(out_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$2$unpack$out_small out_small(
        .d(out_small$d),
        .q(out_small$q),
        .clock(out_small$clock)
    );
    // Update code
    always @(*) begin
        a_is_large$clock = clock;
        a_is_small$clock = clock;
        held_kind$clock = clock;
        sign_a$clock = clock;
        sign_b$clock = clock;
        shift_a$clock = clock;
        shift_b$clock = clock;
        a_is_large$d = a_is_large$q;
        a_is_small$d = a_is_small$q;
        held_kind$d = held_kind$q;
        sign_a$d = sign_a$q;
        sign_b$d = sign_b$q;
        shift_a$d = shift_a$q;
        shift_b$d = shift_b$q;
        significand_a$clock = clock;
        significand_b$clock = clock;
        significand_a$d = significand_a$q;
        significand_b$d = significand_b$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_distance$clock = clock;
        out_large$clock = clock;
        out_small$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_distance$d = out_distance$q;
        out_large$d = out_large$q;
        out_small$d = out_small$q;
        magnitude_a = a[(32'h0)+:(31)];
        magnitude_b = b[(32'h0)+:(31)];
        at_least = magnitude_a >= magnitude_b;
        a_is_large$d = at_least;
        a_is_small$d = ~at_least;
        exponent_a = a[(32'h17)+:(8)];
        exponent_b = b[(32'h17)+:(8)];
        fraction_a = a[(32'h0)+:(23)];
        fraction_b = b[(32'h0)+:(23)];
        shift_a$d = 32'h1;
        shift_b$d = 32'h1;
        significand_a$d = ((fraction_a) & 24'hffffff);
        significand_b$d = ((fraction_b) & 24'hffffff);
        if (|exponent_a) begin
            shift_a$d = exponent_a;
            significand_a$d = ((fraction_a) & 24'hffffff) | 32'h800000;
        end
        if (|exponent_b) begin
            shift_b$d = exponent_b;
            significand_b$d = ((fraction_b) & 24'hffffff) | 32'h800000;
        end
        sign_a$d = a[32'h1f];
        sign_b$d = b[32'h1f];
        unlike = a[32'h1f] ^ b[32'h1f];
        a_special = &exponent_a;
        b_special = &exponent_b;
        held_kind$d[(64'h0)+:(1)] = 1'b0;
        held_kind$d[(64'h1)+:(1)] = unlike;
        held_kind$d[(64'h2)+:(1)] = (a_special & |fraction_a) | (b_special & |fraction_b) | (a_special & b_special & unlike);
        held_kind$d[(64'h3)+:(1)] = a_special | b_special;
        out_kind$d = held_kind$q;
        out_kind$d[(64'h0)+:(1)] = sign_b$q;
        shift_x = shift_b$q;
        out_large$d = significand_b$q;
        if (a_is_large$q) begin
            out_kind$d[(64'h0)+:(1)] = sign_a$q;
            shift_x = shift_a$q;
            out_large$d = significand_a$q;
        end
        shift_y = shift_b$q;
        out_small$d = significand_b$q;
        if (a_is_small$q) begin
            shift_y = shift_a$q;
            out_small$d = significand_a$q;
        end
        out_exponent$d = shift_x;
        out_distance$d = shift_x - shift_y;
        kind = out_kind$q;
        exponent = out_exponent$q;
        distance = out_distance$q;
        larger = out_large$q;
        smaller = out_small$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$unpack
module iswitch_accel$datapath$accumulator$adders$lane$2$unpack$a_is_large(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$unpack$a_is_large
module iswitch_accel$datapath$accumulator$adders$lane$2$unpack$a_is_small(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$unpack$a_is_small
module iswitch_accel$datapath$accumulator$adders$lane$2$unpack$held_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$unpack$held_kind
module iswitch_accel$datapath$accumulator$adders$lane$2$unpack$out_distance(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$unpack$out_distance
module iswitch_accel$datapath$accumulator$adders$lane$2$unpack$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$unpack$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$2$unpack$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$unpack$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$2$unpack$out_large(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$unpack$out_large
module iswitch_accel$datapath$accumulator$adders$lane$2$unpack$out_small(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$unpack$out_small
module iswitch_accel$datapath$accumulator$adders$lane$2$unpack$shift_a(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$unpack$shift_a
module iswitch_accel$datapath$accumulator$adders$lane$2$unpack$shift_b(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$unpack$shift_b
module iswitch_accel$datapath$accumulator$adders$lane$2$unpack$sign_a(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$unpack$sign_a
module iswitch_accel$datapath$accumulator$adders$lane$2$unpack$sign_b(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$unpack$sign_b
module iswitch_accel$datapath$accumulator$adders$lane$2$unpack$significand_a(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$unpack$significand_a
module iswitch_accel$datapath$accumulator$adders$lane$2$unpack$significand_b(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$2$unpack$significand_b
module iswitch_accel$datapath$accumulator$adders$lane$3(clock,a,b,sum);
    // Module arguments
    input wire  clock;
    input wire  [31:0] a;
    input wire  [31:0] b;
    output reg  [31:0] sum;
    // Stub signals
    reg  unpack$clock;
    reg  [31:0] unpack$a;
    reg  [31:0] unpack$b;
    wire  [3:0] unpack$kind;
    wire  [7:0] unpack$exponent;
    wire  [7:0] unpack$distance;
    wire  [23:0] unpack$larger;
    wire  [23:0] unpack$smaller;
    reg  align$clock;
    reg  [3:0] align$kind_in;
    reg  [7:0] align$exponent_in;
    reg  [7:0] align$distance;
    reg  [23:0] align$larger;
    reg  [23:0] align$smaller;
    wire  [3:0] align$kind;
    wire  [7:0] align$exponent;
    wire  [27:0] align$total;
    reg  normalise$clock;
    reg  [3:0] normalise$kind_in;
    reg  [7:0] normalise$exponent_in;
    reg  [27:0] normalise$total;
    wire  [3:0] normalise$kind;
    wire  [7:0] normalise$exponent;
    wire  [26:0] normalise$fraction;
    reg  round$clock;
    reg  [3:0] round$kind;
    reg  [7:0] round$exponent;
    reg  [26:0] round$fraction;
    wire  [31:0] round$sum;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$3$unpack unpack(
        .clock(unpack$clock),
        .a(unpack$a),
        .b(unpack$b),
        .kind(unpack$kind),
        .exponent(unpack$exponent),
        .distance(unpack$distance),
        .larger(unpack$larger),
        .smaller(unpack$smaller)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$align align(
        .clock(align$clock),
        .kind_in(align$kind_in),
        .exponent_in(align$exponent_in),
        .distance(align$distance),
        .larger(align$larger),
        .smaller(align$smaller),
        .kind(align$kind),
        .exponent(align$exponent),
        .total(align$total)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$normalise normalise(
        .clock(normalise$clock),
        .kind_in(normalise$kind_in),
        .exponent_in(normalise$exponent_in),
        .total(normalise$total),
        .kind(normalise$kind),
        .exponent(normalise$exponent),
        .fraction(normalise$fraction)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$round round(
        .clock(round$clock),
        .kind(round$kind),
        .exponent(round$exponent),
        .fraction(round$fraction),
        .sum(round$sum)
    );
    // Update code
    always @(*) begin
        unpack$clock = clock;
        align$clock = clock;
        normalise$clock = clock;
        round$clock = clock;
        unpack$a = a;
        unpack$b = b;
        align$kind_in = unpack$kind;
        align$exponent_in = unpack$exponent;
        align$distance = unpack$distance;
        align$larger = unpack$larger;
        align$smaller = unpack$smaller;
        normalise$kind_in = align$kind;
        normalise$exponent_in = align$exponent;
        normalise$total = align$total;
        round$kind = normalise$kind;
        round$exponent = normalise$exponent;
        round$fraction = normalise$fraction;
        sum = round$sum;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3
module iswitch_accel$datapath$accumulator$adders$lane$3$align(clock,kind_in,exponent_in,distance,larger,smaller,kind,exponent,total);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind_in;
    input wire  [7:0] exponent_in;
    input wire  [7:0] distance;
    input wire  [23:0] larger;
    input wire  [23:0] smaller;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [27:0] total;
    // Stub signals
    reg  [3:0] aligned_kind$d;
    wire  [3:0] aligned_kind$q;
    reg  aligned_kind$clock;
    reg  [7:0] aligned_exponent$d;
    wire  [7:0] aligned_exponent$q;
    reg  aligned_exponent$clock;
    reg  [23:0] aligned_large$d;
    wire  [23:0] aligned_large$q;
    reg  aligned_large$clock;
    reg  [26:0] aligned_small$d;
    wire  [26:0] aligned_small$q;
    reg  aligned_small$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [27:0] out_total$d;
    wire  [27:0] out_total$q;
    reg  out_total$clock;
    // Local signals
    reg  [26:0] by_0;
    reg  [26:0] by_1;
    reg  [26:0] by_3;
    reg  [26:0] by_7;
    reg  [26:0] by_15;
    reg  [26:0] by_31;
    reg  lost_1;
    reg  lost_3;
    reg  lost_7;
    reg  lost_15;
    reg  lost_31;
    reg  all_lost;
    reg  [28:0] augend;
    reg  [28:0] addend;
    reg  [28:0] complement;
    reg  [28:0] sum;
    reg  [28:0] shifted;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$3$align$aligned_kind aligned_kind(
        .d(aligned_kind$d),
        .q(aligned_kind$q),
        .clock(aligned_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$align$aligned_exponent aligned_exponent(
        .d(aligned_exponent$d),
        .q(aligned_exponent$q),
        .clock(aligned_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$align$aligned_large aligned_large(
        .d(aligned_large$d),
        .q(aligned_large$q),
        .clock(aligned_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$align$aligned_small aligned_small(
        .d(aligned_small$d),
        .q(aligned_small$q),
        .clock(aligned_small$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$align$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$align$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$align$out_total out_total(
        .d(out_total$d),
        .q(out_total$q),
        .clock(out_total$clock)
    );
    // Update code
    always @(*) begin
        aligned_kind$clock = clock;
        aligned_exponent$clock = clock;
        aligned_large$clock = clock;
        aligned_small$clock = clock;
        aligned_kind$d = aligned_kind$q;
        aligned_exponent$d = aligned_exponent$q;
        aligned_large$d = aligned_large$q;
        aligned_small$d = aligned_small$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_total$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_total$d = out_total$q;
        by_0 = ((smaller) & 27'h7ffffff) << 32'h3;
        by_1 = by_0;
        lost_1 = 1'b0;
        if (distance[32'h0]) begin
            by_1 = by_0 >> 32'h1;
            lost_1 = by_0[32'h0];
        end
        by_3 = by_1;
        lost_3 = lost_1;
        if (distance[32'h1]) begin
            by_3 = by_1 >> 32'h2;
            lost_3 = lost_1 | |by_1[(32'h0)+:(2)];
        end
        by_7 = by_3;
        lost_7 = lost_3;
        if (distance[32'h2]) begin
            by_7 = by_3 >> 32'h4;
            lost_7 = lost_3 | |by_3[(32'h0)+:(4)];
        end
        by_15 = by_7;
        lost_15 = lost_7;
        if (distance[32'h3]) begin
            by_15 = by_7 >> 32'h8;
            lost_15 = lost_7 | |by_7[(32'h0)+:(8)];
        end
        by_31 = by_15;
        lost_31 = lost_15;
        if (distance[32'h4]) begin
            by_31 = by_15 >> 32'h10;
            lost_31 = lost_15 | |by_15[(32'h0)+:(16)];
        end
        aligned_small$d = by_31 | ((lost_31) & 27'h7ffffff);
        all_lost = |distance[(32'h5)+:(3)];
        if (all_lost) begin
            aligned_small$d = ((|smaller) & 27'h7ffffff);
        end
        aligned_kind$d = kind_in;
        aligned_exponent$d = exponent_in;
        aligned_large$d = larger;
        shifted = ((aligned_large$q) & 29'h1fffffff) << 32'h4;
        augend = shifted | 32'h1;
        addend = ((aligned_small$q) & 29'h1fffffff) << 32'h1;
        complement = addend;
        if (aligned_kind$q[(64'h1)+:(1)]) begin
            complement = ~addend;
        end
        sum = augend + complement;
        out_total$d = sum[(32'h1)+:(28)];
        out_kind$d = aligned_kind$q;
        out_exponent$d = aligned_exponent$q;
        kind = out_kind$q;
        exponent = out_exponent$q;
        total = out_total$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$align
module iswitch_accel$datapath$accumulator$adders$lane$3$align$aligned_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$align$aligned_exponent
module iswitch_accel$datapath$accumulator$adders$lane$3$align$aligned_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$align$aligned_kind
module iswitch_accel$datapath$accumulator$adders$lane$3$align$aligned_large(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$align$aligned_large
module iswitch_accel$datapath$accumulator$adders$lane$3$align$aligned_small(d,q,clock);
    // Module arguments
    input wire  [26:0] d;
    output reg  [26:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 27'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$align$aligned_small
module iswitch_accel$datapath$accumulator$adders$lane$3$align$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$align$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$3$align$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$align$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$3$align$out_total(d,q,clock);
    // Module arguments
    input wire  [27:0] d;
    output reg  [27:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 28'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$align$out_total
module iswitch_accel$datapath$accumulator$adders$lane$3$normalise(clock,kind_in,exponent_in,total,kind,exponent,fraction);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind_in;
    input wire  [7:0] exponent_in;
    input wire  [27:0] total;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [26:0] fraction;
    // Stub signals
    reg  [3:0] counted_kind$d;
    wire  [3:0] counted_kind$q;
    reg  counted_kind$clock;
    reg  [7:0] counted_exponent$d;
    wire  [7:0] counted_exponent$q;
    reg  counted_exponent$clock;
    reg  [27:0] counted_total$d;
    wire  [27:0] counted_total$q;
    reg  counted_total$clock;
    reg  [4:0] shift$d;
    wire  [4:0] shift$q;
    reg  shift$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [26:0] out_fraction$d;
    wire  [26:0] out_fraction$q;
    reg  out_fraction$clock;
    // Local signals
    reg  [27:0] padded;
    reg  [3:0] group$0;
    reg  [3:0] group$1;
    reg  [3:0] group$2;
    reg  [3:0] group$3;
    reg  [3:0] group$4;
    reg  [3:0] group$5;
    reg  [3:0] group$6;
    reg  [4:0] within$0;
    reg  [4:0] within$1;
    reg  [4:0] within$2;
    reg  [4:0] within$3;
    reg  [4:0] within$4;
    reg  [4:0] within$5;
    reg  [4:0] within$6;
    reg  [4:0] groups_before;
    reg  [4:0] zeros_within;
    reg  [4:0] zeros;
    reg  [7:0] wide_zeros;
    reg  [7:0] most;
    reg  [26:0] by_0;
    reg  [26:0] by_1;
    reg  [26:0] by_3;
    reg  [26:0] by_7;
    reg  [26:0] by_15;
    reg  [26:0] by_31;
    reg  [7:0] wide_shift;
    reg  lowest;
    reg  [26:0] carried;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$3$normalise$counted_kind counted_kind(
        .d(counted_kind$d),
        .q(counted_kind$q),
        .clock(counted_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$normalise$counted_exponent counted_exponent(
        .d(counted_exponent$d),
        .q(counted_exponent$q),
        .clock(counted_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$normalise$counted_total counted_total(
        .d(counted_total$d),
        .q(counted_total$q),
        .clock(counted_total$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$normalise$shift shift(
        .d(shift$d),
        .q(shift$q),
        .clock(shift$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$normalise$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$normalise$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$normalise$out_fraction out_fraction(
        .d(out_fraction$d),
        .q(out_fraction$q),
        .clock(out_fraction$clock)
    );
    // Update code
    always @(*) begin
        counted_kind$clock = clock;
        counted_exponent$clock = clock;
        counted_total$clock = clock;
        shift$clock = clock;
        counted_kind$d = counted_kind$q;
        counted_exponent$d = counted_exponent$q;
        counted_total$d = counted_total$q;
        shift$d = shift$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_fraction$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_fraction$d = out_fraction$q;
        padded = total << 32'h1;
        groups_before = 32'h1c;
        zeros_within = 32'h3;
        group$0 = padded[(32'h4 * 0)+:(4)];
        within$0 = 32'h3;
        if (group$0[32'h1]) begin
            within$0 = 32'h2;
        end
        if (group$0[32'h2]) begin
            within$0 = 32'h1;
        end
        if (group$0[32'h3]) begin
            within$0 = 32'h0;
        end
        if (|group$0) begin
            groups_before = (32'h4 * (32'h6 - 0));
            zeros_within = within$0;
        end
        group$1 = padded[(32'h4 * 1)+:(4)];
        within$1 = 32'h3;
        if (group$1[32'h1]) begin
            within$1 = 32'h2;
        end
        if (group$1[32'h2]) begin
            within$1 = 32'h1;
        end
        if (group$1[32'h3]) begin
            within$1 = 32'h0;
        end
        if (|group$1) begin
            groups_before = (32'h4 * (32'h6 - 1));
            zeros_within = within$1;
        end
        group$2 = padded[(32'h4 * 2)+:(4)];
        within$2 = 32'h3;
        if (group$2[32'h1]) begin
            within$2 = 32'h2;
        end
        if (group$2[32'h2]) begin
            within$2 = 32'h1;
        end
        if (group$2[32'h3]) begin
            within$2 = 32'h0;
        end
        if (|group$2) begin
            groups_before = (32'h4 * (32'h6 - 2));
            zeros_within = within$2;
        end
        group$3 = padded[(32'h4 * 3)+:(4)];
        within$3 = 32'h3;
        if (group$3[32'h1]) begin
            within$3 = 32'h2;
        end
        if (group$3[32'h2]) begin
            within$3 = 32'h1;
        end
        if (group$3[32'h3]) begin
            within$3 = 32'h0;
        end
        if (|group$3) begin
            groups_before = (32'h4 * (32'h6 - 3));
            zeros_within = within$3;
        end
        group$4 = padded[(32'h4 * 4)+:(4)];
        within$4 = 32'h3;
        if (group$4[32'h1]) begin
            within$4 = 32'h2;
        end
        if (group$4[32'h2]) begin
            within$4 = 32'h1;
        end
        if (group$4[32'h3]) begin
            within$4 = 32'h0;
        end
        if (|group$4) begin
            groups_before = (32'h4 * (32'h6 - 4));
            zeros_within = within$4;
        end
        group$5 = padded[(32'h4 * 5)+:(4)];
        within$5 = 32'h3;
        if (group$5[32'h1]) begin
            within$5 = 32'h2;
        end
        if (group$5[32'h2]) begin
            within$5 = 32'h1;
        end
        if (group$5[32'h3]) begin
            within$5 = 32'h0;
        end
        if (|group$5) begin
            groups_before = (32'h4 * (32'h6 - 5));
            zeros_within = within$5;
        end
        group$6 = padded[(32'h4 * 6)+:(4)];
        within$6 = 32'h3;
        if (group$6[32'h1]) begin
            within$6 = 32'h2;
        end
        if (group$6[32'h2]) begin
            within$6 = 32'h1;
        end
        if (group$6[32'h3]) begin
            within$6 = 32'h0;
        end
        if (|group$6) begin
            groups_before = (32'h4 * (32'h6 - 6));
            zeros_within = within$6;
        end
        zeros = groups_before | zeros_within;
        most = exponent_in - 32'h1;
        wide_zeros = ((zeros) & 8'hff);
        shift$d = zeros;
        if (wide_zeros > most) begin
            shift$d = most[(32'h0)+:(5)];
        end
        counted_kind$d = kind_in;
        counted_exponent$d = exponent_in;
        counted_total$d = total;
        by_0 = counted_total$q[(32'h0)+:(27)];
        by_1 = by_0;
        if (shift$q[32'h0]) begin
            by_1 = by_0 << 32'h1;
        end
        by_3 = by_1;
        if (shift$q[32'h1]) begin
            by_3 = by_1 << 32'h2;
        end
        by_7 = by_3;
        if (shift$q[32'h2]) begin
            by_7 = by_3 << 32'h4;
        end
        by_15 = by_7;
        if (shift$q[32'h3]) begin
            by_15 = by_7 << 32'h8;
        end
        by_31 = by_15;
        if (shift$q[32'h4]) begin
            by_31 = by_15 << 32'h10;
        end
        wide_shift = ((shift$q) & 8'hff);
        lowest = counted_total$q[(32'h0)+:(1)];
        carried = counted_total$q[(32'h1)+:(27)];
        out_fraction$d = by_31;
        out_exponent$d = counted_exponent$q - wide_shift;
        if (counted_total$q[32'h1b]) begin
            out_fraction$d = carried | ((lowest) & 27'h7ffffff);
            out_exponent$d = counted_exponent$q + 32'h1;
        end
        out_kind$d = counted_kind$q;
        if (counted_kind$q[(64'h1)+:(1)] & ~|counted_total$q) begin
            out_kind$d[(64'h0)+:(1)] = 1'b0;
        end
        kind = out_kind$q;
        exponent = out_exponent$q;
        fraction = out_fraction$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$normalise
module iswitch_accel$datapath$accumulator$adders$lane$3$normalise$counted_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$normalise$counted_exponent
module iswitch_accel$datapath$accumulator$adders$lane$3$normalise$counted_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$normalise$counted_kind
module iswitch_accel$datapath$accumulator$adders$lane$3$normalise$counted_total(d,q,clock);
    // Module arguments
    input wire  [27:0] d;
    output reg  [27:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 28'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$normalise$counted_total
module iswitch_accel$datapath$accumulator$adders$lane$3$normalise$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$normalise$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$3$normalise$out_fraction(d,q,clock);
    // Module arguments
    input wire  [26:0] d;
    output reg  [26:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 27'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$normalise$out_fraction
module iswitch_accel$datapath$accumulator$adders$lane$3$normalise$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$normalise$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$3$normalise$shift(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$normalise$shift
module iswitch_accel$datapath$accumulator$adders$lane$3$round(clock,kind,exponent,fraction,sum);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind;
    input wire  [7:0] exponent;
    input wire  [26:0] fraction;
    output reg  [31:0] sum;
    // Stub signals
    reg  [31:0] out_sum$d;
    wire  [31:0] out_sum$q;
    reg  out_sum$clock;
    // Local signals
    reg  [22:0] kept;
    reg  [30:0] field;
    reg  [30:0] truncated;
    reg  up;
    reg  [30:0] rounded;
    reg  largest;
    reg  overflows;
    reg  [31:0] magnitude;
    reg  [31:0] sign;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$3$round$out_sum out_sum(
        .d(out_sum$d),
        .q(out_sum$q),
        .clock(out_sum$clock)
    );
    // Update code
    always @(*) begin
        out_sum$clock = clock;
        out_sum$d = out_sum$q;
        kept = fraction[(32'h3)+:(23)];
        field = ((exponent) & 31'h7fffffff) << 32'h17;
        truncated = ((kept) & 31'h7fffffff);
        if (fraction[32'h1a]) begin
            truncated = ((kept) & 31'h7fffffff) | field;
        end
        up = fraction[32'h2] & (fraction[32'h3] | fraction[32'h1] | fraction[32'h0]);
        rounded = truncated + ((up) & 31'h7fffffff);
        largest = (exponent == 32'hfe) & &kept;
        overflows = fraction[32'h1a] & (&exponent | (largest & up));
        magnitude = ((rounded) & 32'hffffffff);
        if (overflows | kind[(64'h3)+:(1)]) begin
            magnitude = 32'h7f800000;
        end
        sign = ((kind[(64'h0)+:(1)]) & 32'hffffffff) << 32'h1f;
        out_sum$d = magnitude | sign;
        if (kind[(64'h2)+:(1)]) begin
            out_sum$d = 32'h7fc00000;
        end
        sum = out_sum$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$round
module iswitch_accel$datapath$accumulator$adders$lane$3$round$out_sum(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$round$out_sum
module iswitch_accel$datapath$accumulator$adders$lane$3$unpack(clock,a,b,kind,exponent,distance,larger,smaller);
    // Module arguments
    input wire  clock;
    input wire  [31:0] a;
    input wire  [31:0] b;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [7:0] distance;
    output reg  [23:0] larger;
    output reg  [23:0] smaller;
    // Stub signals
    reg  a_is_large$d;
    wire  a_is_large$q;
    reg  a_is_large$clock;
    reg  a_is_small$d;
    wire  a_is_small$q;
    reg  a_is_small$clock;
    reg  [3:0] held_kind$d;
    wire  [3:0] held_kind$q;
    reg  held_kind$clock;
    reg  sign_a$d;
    wire  sign_a$q;
    reg  sign_a$clock;
    reg  sign_b$d;
    wire  sign_b$q;
    reg  sign_b$clock;
    reg  [7:0] shift_a$d;
    wire  [7:0] shift_a$q;
    reg  shift_a$clock;
    reg  [7:0] shift_b$d;
    wire  [7:0] shift_b$q;
    reg  shift_b$clock;
    reg  [23:0] significand_a$d;
    wire  [23:0] significand_a$q;
    reg  significand_a$clock;
    reg  [23:0] significand_b$d;
    wire  [23:0] significand_b$q;
    reg  significand_b$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [7:0] out_distance$d;
    wire  [7:0] out_distance$q;
    reg  out_distance$clock;
    reg  [23:0] out_large$d;
    wire  [23:0] out_large$q;
    reg  out_large$clock;
    reg  [23:0] out_small$d;
    wire  [23:0] out_small$q;
    reg  out_small$clock;
    // Local signals
    reg  [30:0] magnitude_a;
    reg  [30:0] magnitude_b;
    reg  at_least;
    reg  [7:0] exponent_a;
    reg  [7:0] exponent_b;
    reg  [22:0] fraction_a;
    reg  [22:0] fraction_b;
    reg  a_special;
    reg  b_special;
    reg  unlike;
    reg  [7:0] shift_x;
    reg  [7:0] shift_y;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$3$unpack$a_is_large a_is_large(
        .d(a_is_large$d),
        .q(a_is_large$q),
        .clock(a_is_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$unpack$a_is_small a_is_small(
        .d(a_is_small$d),
        .q(a_is_small$q),
        .clock(a_is_small$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$unpack$held_kind held_kind(
        .d(held_kind$d),
        .q(held_kind$q),
        .clock(held_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$unpack$sign_a sign_a(
        .d(sign_a$d),
        .q(sign_a$q),
        .clock(sign_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$unpack$sign_b sign_b(
        .d(sign_b$d),
        .q(sign_b$q),
        .clock(sign_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$unpack$shift_a shift_a(
        .d(shift_a$d),
        .q(shift_a$q),
        .clock(shift_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$unpack$shift_b shift_b(
        .d(shift_b$d),
        .q(shift_b$q),
        .clock(shift_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$unpack$significand_a significand_a(
        .d(significand_a$d),
        .q(significand_a$q),
        .clock(significand_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$unpack$significand_b significand_b(
        .d(significand_b$d),
        .q(significand_b$q),
        .clock(significand_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$unpack$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$unpack$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$unpack$out_distance out_distance(
        .d(out_distance$d),
        .q(out_distance$q),
        .clock(out_distance$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$unpack$out_large out_large(
        .d(out_large$d),
        .q(out_large$q),
        .clock(out_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$3$unpack$out_small out_small(
        .d(out_small$d),
        .q(out_small$q),
        .clock(out_small$clock)
    );
    // Update code
    always @(*) begin
        a_is_large$clock = clock;
        a_is_small$clock = clock;
        held_kind$clock = clock;
        sign_a$clock = clock;
        sign_b$clock = clock;
        shift_a$clock = clock;
        shift_b$clock = clock;
        a_is_large$d = a_is_large$q;
        a_is_small$d = a_is_small$q;
        held_kind$d = held_kind$q;
        sign_a$d = sign_a$q;
        sign_b$d = sign_b$q;
        shift_a$d = shift_a$q;
        shift_b$d = shift_b$q;
        significand_a$clock = clock;
        significand_b$clock = clock;
        significand_a$d = significand_a$q;
        significand_b$d = significand_b$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_distance$clock = clock;
        out_large$clock = clock;
        out_small$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_distance$d = out_distance$q;
        out_large$d = out_large$q;
        out_small$d = out_small$q;
        magnitude_a = a[(32'h0)+:(31)];
        magnitude_b = b[(32'h0)+:(31)];
        at_least = magnitude_a >= magnitude_b;
        a_is_large$d = at_least;
        a_is_small$d = ~at_least;
        exponent_a = a[(32'h17)+:(8)];
        exponent_b = b[(32'h17)+:(8)];
        fraction_a = a[(32'h0)+:(23)];
        fraction_b = b[(32'h0)+:(23)];
        shift_a$d = 32'h1;
        shift_b$d = 32'h1;
        significand_a$d = ((fraction_a) & 24'hffffff);
        significand_b$d = ((fraction_b) & 24'hffffff);
        if (|exponent_a) begin
            shift_a$d = exponent_a;
            significand_a$d = ((fraction_a) & 24'hffffff) | 32'h800000;
        end
        if (|exponent_b) begin
            shift_b$d = exponent_b;
            significand_b$d = ((fraction_b) & 24'hffffff) | 32'h800000;
        end
        sign_a$d = a[32'h1f];
        sign_b$d = b[32'h1f];
        unlike = a[32'h1f] ^ b[32'h1f];
        a_special = &exponent_a;
        b_special = &exponent_b;
        held_kind$d[(64'h0)+:(1)] = 1'b0;
        held_kind$d[(64'h1)+:(1)] = unlike;
        held_kind$d[(64'h2)+:(1)] = (a_special & |fraction_a) | (b_special & |fraction_b) | (a_special & b_special & unlike);
        held_kind$d[(64'h3)+:(1)] = a_special | b_special;
        out_kind$d = held_kind$q;
        out_kind$d[(64'h0)+:(1)] = sign_b$q;
        shift_x = shift_b$q;
        out_large$d = significand_b$q;
        if (a_is_large$q) begin
            out_kind$d[(64'h0)+:(1)] = sign_a$q;
            shift_x = shift_a$q;
            out_large$d = significand_a$q;
        end
        shift_y = shift_b$q;
        out_small$d = significand_b$q;
        if (a_is_small$q) begin
            shift_y = shift_a$q;
            out_small$d = significand_a$q;
        end
        out_exponent$d = shift_x;
        out_distance$d = shift_x - shift_y;
        kind = out_kind$q;
        exponent = out_exponent$q;
        distance = out_distance$q;
        larger = out_large$q;
        smaller = out_small$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$unpack
module iswitch_accel$datapath$accumulator$adders$lane$3$unpack$a_is_large(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$unpack$a_is_large
module iswitch_accel$datapath$accumulator$adders$lane$3$unpack$a_is_small(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$unpack$a_is_small
module iswitch_accel$datapath$accumulator$adders$lane$3$unpack$held_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$unpack$held_kind
module iswitch_accel$datapath$accumulator$adders$lane$3$unpack$out_distance(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$unpack$out_distance
module iswitch_accel$datapath$accumulator$adders$lane$3$unpack$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$unpack$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$3$unpack$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$unpack$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$3$unpack$out_large(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$unpack$out_large
module iswitch_accel$datapath$accumulator$adders$lane$3$unpack$out_small(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$unpack$out_small
module iswitch_accel$datapath$accumulator$adders$lane$3$unpack$shift_a(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$unpack$shift_a
module iswitch_accel$datapath$accumulator$adders$lane$3$unpack$shift_b(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$unpack$shift_b
module iswitch_accel$datapath$accumulator$adders$lane$3$unpack$sign_a(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$unpack$sign_a
module iswitch_accel$datapath$accumulator$adders$lane$3$unpack$sign_b(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$unpack$sign_b
module iswitch_accel$datapath$accumulator$adders$lane$3$unpack$significand_a(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$unpack$significand_a
module iswitch_accel$datapath$accumulator$adders$lane$3$unpack$significand_b(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$3$unpack$significand_b
module iswitch_accel$datapath$accumulator$adders$lane$4(clock,a,b,sum);
    // Module arguments
    input wire  clock;
    input wire  [31:0] a;
    input wire  [31:0] b;
    output reg  [31:0] sum;
    // Stub signals
    reg  unpack$clock;
    reg  [31:0] unpack$a;
    reg  [31:0] unpack$b;
    wire  [3:0] unpack$kind;
    wire  [7:0] unpack$exponent;
    wire  [7:0] unpack$distance;
    wire  [23:0] unpack$larger;
    wire  [23:0] unpack$smaller;
    reg  align$clock;
    reg  [3:0] align$kind_in;
    reg  [7:0] align$exponent_in;
    reg  [7:0] align$distance;
    reg  [23:0] align$larger;
    reg  [23:0] align$smaller;
    wire  [3:0] align$kind;
    wire  [7:0] align$exponent;
    wire  [27:0] align$total;
    reg  normalise$clock;
    reg  [3:0] normalise$kind_in;
    reg  [7:0] normalise$exponent_in;
    reg  [27:0] normalise$total;
    wire  [3:0] normalise$kind;
    wire  [7:0] normalise$exponent;
    wire  [26:0] normalise$fraction;
    reg  round$clock;
    reg  [3:0] round$kind;
    reg  [7:0] round$exponent;
    reg  [26:0] round$fraction;
    wire  [31:0] round$sum;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$4$unpack unpack(
        .clock(unpack$clock),
        .a(unpack$a),
        .b(unpack$b),
        .kind(unpack$kind),
        .exponent(unpack$exponent),
        .distance(unpack$distance),
        .larger(unpack$larger),
        .smaller(unpack$smaller)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$align align(
        .clock(align$clock),
        .kind_in(align$kind_in),
        .exponent_in(align$exponent_in),
        .distance(align$distance),
        .larger(align$larger),
        .smaller(align$smaller),
        .kind(align$kind),
        .exponent(align$exponent),
        .total(align$total)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$normalise normalise(
        .clock(normalise$clock),
        .kind_in(normalise$kind_in),
        .exponent_in(normalise$exponent_in),
        .total(normalise$total),
        .kind(normalise$kind),
        .exponent(normalise$exponent),
        .fraction(normalise$fraction)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$round round(
        .clock(round$clock),
        .kind(round$kind),
        .exponent(round$exponent),
        .fraction(round$fraction),
        .sum(round$sum)
    );
    // Update code
    always @(*) begin
        unpack$clock = clock;
        align$clock = clock;
        normalise$clock = clock;
        round$clock = clock;
        unpack$a = a;
        unpack$b = b;
        align$kind_in = unpack$kind;
        align$exponent_in = unpack$exponent;
        align$distance = unpack$distance;
        align$larger = unpack$larger;
        align$smaller = unpack$smaller;
        normalise$kind_in = align$kind;
        normalise$exponent_in = align$exponent;
        normalise$total = align$total;
        round$kind = normalise$kind;
        round$exponent = normalise$exponent;
        round$fraction = normalise$fraction;
        sum = round$sum;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4
module iswitch_accel$datapath$accumulator$adders$lane$4$align(clock,kind_in,exponent_in,distance,larger,smaller,kind,exponent,total);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind_in;
    input wire  [7:0] exponent_in;
    input wire  [7:0] distance;
    input wire  [23:0] larger;
    input wire  [23:0] smaller;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [27:0] total;
    // Stub signals
    reg  [3:0] aligned_kind$d;
    wire  [3:0] aligned_kind$q;
    reg  aligned_kind$clock;
    reg  [7:0] aligned_exponent$d;
    wire  [7:0] aligned_exponent$q;
    reg  aligned_exponent$clock;
    reg  [23:0] aligned_large$d;
    wire  [23:0] aligned_large$q;
    reg  aligned_large$clock;
    reg  [26:0] aligned_small$d;
    wire  [26:0] aligned_small$q;
    reg  aligned_small$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [27:0] out_total$d;
    wire  [27:0] out_total$q;
    reg  out_total$clock;
    // Local signals
    reg  [26:0] by_0;
    reg  [26:0] by_1;
    reg  [26:0] by_3;
    reg  [26:0] by_7;
    reg  [26:0] by_15;
    reg  [26:0] by_31;
    reg  lost_1;
    reg  lost_3;
    reg  lost_7;
    reg  lost_15;
    reg  lost_31;
    reg  all_lost;
    reg  [28:0] augend;
    reg  [28:0] addend;
    reg  [28:0] complement;
    reg  [28:0] sum;
    reg  [28:0] shifted;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$4$align$aligned_kind aligned_kind(
        .d(aligned_kind$d),
        .q(aligned_kind$q),
        .clock(aligned_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$align$aligned_exponent aligned_exponent(
        .d(aligned_exponent$d),
        .q(aligned_exponent$q),
        .clock(aligned_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$align$aligned_large aligned_large(
        .d(aligned_large$d),
        .q(aligned_large$q),
        .clock(aligned_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$align$aligned_small aligned_small(
        .d(aligned_small$d),
        .q(aligned_small$q),
        .clock(aligned_small$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$align$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$align$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$align$out_total out_total(
        .d(out_total$d),
        .q(out_total$q),
        .clock(out_total$clock)
    );
    // Update code
    always @(*) begin
        aligned_kind$clock = clock;
        aligned_exponent$clock = clock;
        aligned_large$clock = clock;
        aligned_small$clock = clock;
        aligned_kind$d = aligned_kind$q;
        aligned_exponent$d = aligned_exponent$q;
        aligned_large$d = aligned_large$q;
        aligned_small$d = aligned_small$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_total$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_total$d = out_total$q;
        by_0 = ((smaller) & 27'h7ffffff) << 32'h3;
        by_1 = by_0;
        lost_1 = 1'b0;
        if (distance[32'h0]) begin
            by_1 = by_0 >> 32'h1;
            lost_1 = by_0[32'h0];
        end
        by_3 = by_1;
        lost_3 = lost_1;
        if (distance[32'h1]) begin
            by_3 = by_1 >> 32'h2;
            lost_3 = lost_1 | |by_1[(32'h0)+:(2)];
        end
        by_7 = by_3;
        lost_7 = lost_3;
        if (distance[32'h2]) begin
            by_7 = by_3 >> 32'h4;
            lost_7 = lost_3 | |by_3[(32'h0)+:(4)];
        end
        by_15 = by_7;
        lost_15 = lost_7;
        if (distance[32'h3]) begin
            by_15 = by_7 >> 32'h8;
            lost_15 = lost_7 | |by_7[(32'h0)+:(8)];
        end
        by_31 = by_15;
        lost_31 = lost_15;
        if (distance[32'h4]) begin
            by_31 = by_15 >> 32'h10;
            lost_31 = lost_15 | |by_15[(32'h0)+:(16)];
        end
        aligned_small$d = by_31 | ((lost_31) & 27'h7ffffff);
        all_lost = |distance[(32'h5)+:(3)];
        if (all_lost) begin
            aligned_small$d = ((|smaller) & 27'h7ffffff);
        end
        aligned_kind$d = kind_in;
        aligned_exponent$d = exponent_in;
        aligned_large$d = larger;
        shifted = ((aligned_large$q) & 29'h1fffffff) << 32'h4;
        augend = shifted | 32'h1;
        addend = ((aligned_small$q) & 29'h1fffffff) << 32'h1;
        complement = addend;
        if (aligned_kind$q[(64'h1)+:(1)]) begin
            complement = ~addend;
        end
        sum = augend + complement;
        out_total$d = sum[(32'h1)+:(28)];
        out_kind$d = aligned_kind$q;
        out_exponent$d = aligned_exponent$q;
        kind = out_kind$q;
        exponent = out_exponent$q;
        total = out_total$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$align
module iswitch_accel$datapath$accumulator$adders$lane$4$align$aligned_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$align$aligned_exponent
module iswitch_accel$datapath$accumulator$adders$lane$4$align$aligned_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$align$aligned_kind
module iswitch_accel$datapath$accumulator$adders$lane$4$align$aligned_large(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$align$aligned_large
module iswitch_accel$datapath$accumulator$adders$lane$4$align$aligned_small(d,q,clock);
    // Module arguments
    input wire  [26:0] d;
    output reg  [26:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 27'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$align$aligned_small
module iswitch_accel$datapath$accumulator$adders$lane$4$align$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$align$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$4$align$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$align$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$4$align$out_total(d,q,clock);
    // Module arguments
    input wire  [27:0] d;
    output reg  [27:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 28'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$align$out_total
module iswitch_accel$datapath$accumulator$adders$lane$4$normalise(clock,kind_in,exponent_in,total,kind,exponent,fraction);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind_in;
    input wire  [7:0] exponent_in;
    input wire  [27:0] total;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [26:0] fraction;
    // Stub signals
    reg  [3:0] counted_kind$d;
    wire  [3:0] counted_kind$q;
    reg  counted_kind$clock;
    reg  [7:0] counted_exponent$d;
    wire  [7:0] counted_exponent$q;
    reg  counted_exponent$clock;
    reg  [27:0] counted_total$d;
    wire  [27:0] counted_total$q;
    reg  counted_total$clock;
    reg  [4:0] shift$d;
    wire  [4:0] shift$q;
    reg  shift$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [26:0] out_fraction$d;
    wire  [26:0] out_fraction$q;
    reg  out_fraction$clock;
    // Local signals
    reg  [27:0] padded;
    reg  [3:0] group$0;
    reg  [3:0] group$1;
    reg  [3:0] group$2;
    reg  [3:0] group$3;
    reg  [3:0] group$4;
    reg  [3:0] group$5;
    reg  [3:0] group$6;
    reg  [4:0] within$0;
    reg  [4:0] within$1;
    reg  [4:0] within$2;
    reg  [4:0] within$3;
    reg  [4:0] within$4;
    reg  [4:0] within$5;
    reg  [4:0] within$6;
    reg  [4:0] groups_before;
    reg  [4:0] zeros_within;
    reg  [4:0] zeros;
    reg  [7:0] wide_zeros;
    reg  [7:0] most;
    reg  [26:0] by_0;
    reg  [26:0] by_1;
    reg  [26:0] by_3;
    reg  [26:0] by_7;
    reg  [26:0] by_15;
    reg  [26:0] by_31;
    reg  [7:0] wide_shift;
    reg  lowest;
    reg  [26:0] carried;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$4$normalise$counted_kind counted_kind(
        .d(counted_kind$d),
        .q(counted_kind$q),
        .clock(counted_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$normalise$counted_exponent counted_exponent(
        .d(counted_exponent$d),
        .q(counted_exponent$q),
        .clock(counted_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$normalise$counted_total counted_total(
        .d(counted_total$d),
        .q(counted_total$q),
        .clock(counted_total$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$normalise$shift shift(
        .d(shift$d),
        .q(shift$q),
        .clock(shift$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$normalise$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$normalise$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$normalise$out_fraction out_fraction(
        .d(out_fraction$d),
        .q(out_fraction$q),
        .clock(out_fraction$clock)
    );
    // Update code
    always @(*) begin
        counted_kind$clock = clock;
        counted_exponent$clock = clock;
        counted_total$clock = clock;
        shift$clock = clock;
        counted_kind$d = counted_kind$q;
        counted_exponent$d = counted_exponent$q;
        counted_total$d = counted_total$q;
        shift$d = shift$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_fraction$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_fraction$d = out_fraction$q;
        padded = total << 32'h1;
        groups_before = 32'h1c;
        zeros_within = 32'h3;
        group$0 = padded[(32'h4 * 0)+:(4)];
        within$0 = 32'h3;
        if (group$0[32'h1]) begin
            within$0 = 32'h2;
        end
        if (group$0[32'h2]) begin
            within$0 = 32'h1;
        end
        if (group$0[32'h3]) begin
            within$0 = 32'h0;
        end
        if (|group$0) begin
            groups_before = (32'h4 * (32'h6 - 0));
            zeros_within = within$0;
        end
        group$1 = padded[(32'h4 * 1)+:(4)];
        within$1 = 32'h3;
        if (group$1[32'h1]) begin
            within$1 = 32'h2;
        end
        if (group$1[32'h2]) begin
            within$1 = 32'h1;
        end
        if (group$1[32'h3]) begin
            within$1 = 32'h0;
        end
        if (|group$1) begin
            groups_before = (32'h4 * (32'h6 - 1));
            zeros_within = within$1;
        end
        group$2 = padded[(32'h4 * 2)+:(4)];
        within$2 = 32'h3;
        if (group$2[32'h1]) begin
            within$2 = 32'h2;
        end
        if (group$2[32'h2]) begin
            within$2 = 32'h1;
        end
        if (group$2[32'h3]) begin
            within$2 = 32'h0;
        end
        if (|group$2) begin
            groups_before = (32'h4 * (32'h6 - 2));
            zeros_within = within$2;
        end
        group$3 = padded[(32'h4 * 3)+:(4)];
        within$3 = 32'h3;
        if (group$3[32'h1]) begin
            within$3 = 32'h2;
        end
        if (group$3[32'h2]) begin
            within$3 = 32'h1;
        end
        if (group$3[32'h3]) begin
            within$3 = 32'h0;
        end
        if (|group$3) begin
            groups_before = (32'h4 * (32'h6 - 3));
            zeros_within = within$3;
        end
        group$4 = padded[(32'h4 * 4)+:(4)];
        within$4 = 32'h3;
        if (group$4[32'h1]) begin
            within$4 = 32'h2;
        end
        if (group$4[32'h2]) begin
            within$4 = 32'h1;
        end
        if (group$4[32'h3]) begin
            within$4 = 32'h0;
        end
        if (|group$4) begin
            groups_before = (32'h4 * (32'h6 - 4));
            zeros_within = within$4;
        end
        group$5 = padded[(32'h4 * 5)+:(4)];
        within$5 = 32'h3;
        if (group$5[32'h1]) begin
            within$5 = 32'h2;
        end
        if (group$5[32'h2]) begin
            within$5 = 32'h1;
        end
        if (group$5[32'h3]) begin
            within$5 = 32'h0;
        end
        if (|group$5) begin
            groups_before = (32'h4 * (32'h6 - 5));
            zeros_within = within$5;
        end
        group$6 = padded[(32'h4 * 6)+:(4)];
        within$6 = 32'h3;
        if (group$6[32'h1]) begin
            within$6 = 32'h2;
        end
        if (group$6[32'h2]) begin
            within$6 = 32'h1;
        end
        if (group$6[32'h3]) begin
            within$6 = 32'h0;
        end
        if (|group$6) begin
            groups_before = (32'h4 * (32'h6 - 6));
            zeros_within = within$6;
        end
        zeros = groups_before | zeros_within;
        most = exponent_in - 32'h1;
        wide_zeros = ((zeros) & 8'hff);
        shift$d = zeros;
        if (wide_zeros > most) begin
            shift$d = most[(32'h0)+:(5)];
        end
        counted_kind$d = kind_in;
        counted_exponent$d = exponent_in;
        counted_total$d = total;
        by_0 = counted_total$q[(32'h0)+:(27)];
        by_1 = by_0;
        if (shift$q[32'h0]) begin
            by_1 = by_0 << 32'h1;
        end
        by_3 = by_1;
        if (shift$q[32'h1]) begin
            by_3 = by_1 << 32'h2;
        end
        by_7 = by_3;
        if (shift$q[32'h2]) begin
            by_7 = by_3 << 32'h4;
        end
        by_15 = by_7;
        if (shift$q[32'h3]) begin
            by_15 = by_7 << 32'h8;
        end
        by_31 = by_15;
        if (shift$q[32'h4]) begin
            by_31 = by_15 << 32'h10;
        end
        wide_shift = ((shift$q) & 8'hff);
        lowest = counted_total$q[(32'h0)+:(1)];
        carried = counted_total$q[(32'h1)+:(27)];
        out_fraction$d = by_31;
        out_exponent$d = counted_exponent$q - wide_shift;
        if (counted_total$q[32'h1b]) begin
            out_fraction$d = carried | ((lowest) & 27'h7ffffff);
            out_exponent$d = counted_exponent$q + 32'h1;
        end
        out_kind$d = counted_kind$q;
        if (counted_kind$q[(64'h1)+:(1)] & ~|counted_total$q) begin
            out_kind$d[(64'h0)+:(1)] = 1'b0;
        end
        kind = out_kind$q;
        exponent = out_exponent$q;
        fraction = out_fraction$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$normalise
module iswitch_accel$datapath$accumulator$adders$lane$4$normalise$counted_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$normalise$counted_exponent
module iswitch_accel$datapath$accumulator$adders$lane$4$normalise$counted_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$normalise$counted_kind
module iswitch_accel$datapath$accumulator$adders$lane$4$normalise$counted_total(d,q,clock);
    // Module arguments
    input wire  [27:0] d;
    output reg  [27:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 28'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$normalise$counted_total
module iswitch_accel$datapath$accumulator$adders$lane$4$normalise$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$normalise$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$4$normalise$out_fraction(d,q,clock);
    // Module arguments
    input wire  [26:0] d;
    output reg  [26:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 27'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$normalise$out_fraction
module iswitch_accel$datapath$accumulator$adders$lane$4$normalise$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$normalise$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$4$normalise$shift(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$normalise$shift
module iswitch_accel$datapath$accumulator$adders$lane$4$round(clock,kind,exponent,fraction,sum);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind;
    input wire  [7:0] exponent;
    input wire  [26:0] fraction;
    output reg  [31:0] sum;
    // Stub signals
    reg  [31:0] out_sum$d;
    wire  [31:0] out_sum$q;
    reg  out_sum$clock;
    // Local signals
    reg  [22:0] kept;
    reg  [30:0] field;
    reg  [30:0] truncated;
    reg  up;
    reg  [30:0] rounded;
    reg  largest;
    reg  overflows;
    reg  [31:0] magnitude;
    reg  [31:0] sign;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$4$round$out_sum out_sum(
        .d(out_sum$d),
        .q(out_sum$q),
        .clock(out_sum$clock)
    );
    // Update code
    always @(*) begin
        out_sum$clock = clock;
        out_sum$d = out_sum$q;
        kept = fraction[(32'h3)+:(23)];
        field = ((exponent) & 31'h7fffffff) << 32'h17;
        truncated = ((kept) & 31'h7fffffff);
        if (fraction[32'h1a]) begin
            truncated = ((kept) & 31'h7fffffff) | field;
        end
        up = fraction[32'h2] & (fraction[32'h3] | fraction[32'h1] | fraction[32'h0]);
        rounded = truncated + ((up) & 31'h7fffffff);
        largest = (exponent == 32'hfe) & &kept;
        overflows = fraction[32'h1a] & (&exponent | (largest & up));
        magnitude = ((rounded) & 32'hffffffff);
        if (overflows | kind[(64'h3)+:(1)]) begin
            magnitude = 32'h7f800000;
        end
        sign = ((kind[(64'h0)+:(1)]) & 32'hffffffff) << 32'h1f;
        out_sum$d = magnitude | sign;
        if (kind[(64'h2)+:(1)]) begin
            out_sum$d = 32'h7fc00000;
        end
        sum = out_sum$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$round
module iswitch_accel$datapath$accumulator$adders$lane$4$round$out_sum(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$round$out_sum
module iswitch_accel$datapath$accumulator$adders$lane$4$unpack(clock,a,b,kind,exponent,distance,larger,smaller);
    // Module arguments
    input wire  clock;
    input wire  [31:0] a;
    input wire  [31:0] b;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [7:0] distance;
    output reg  [23:0] larger;
    output reg  [23:0] smaller;
    // Stub signals
    reg  a_is_large$d;
    wire  a_is_large$q;
    reg  a_is_large$clock;
    reg  a_is_small$d;
    wire  a_is_small$q;
    reg  a_is_small$clock;
    reg  [3:0] held_kind$d;
    wire  [3:0] held_kind$q;
    reg  held_kind$clock;
    reg  sign_a$d;
    wire  sign_a$q;
    reg  sign_a$clock;
    reg  sign_b$d;
    wire  sign_b$q;
    reg  sign_b$clock;
    reg  [7:0] shift_a$d;
    wire  [7:0] shift_a$q;
    reg  shift_a$clock;
    reg  [7:0] shift_b$d;
    wire  [7:0] shift_b$q;
    reg  shift_b$clock;
    reg  [23:0] significand_a$d;
    wire  [23:0] significand_a$q;
    reg  significand_a$clock;
    reg  [23:0] significand_b$d;
    wire  [23:0] significand_b$q;
    reg  significand_b$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [7:0] out_distance$d;
    wire  [7:0] out_distance$q;
    reg  out_distance$clock;
    reg  [23:0] out_large$d;
    wire  [23:0] out_large$q;
    reg  out_large$clock;
    reg  [23:0] out_small$d;
    wire  [23:0] out_small$q;
    reg  out_small$clock;
    // Local signals
    reg  [30:0] magnitude_a;
    reg  [30:0] magnitude_b;
    reg  at_least;
    reg  [7:0] exponent_a;
    reg  [7:0] exponent_b;
    reg  [22:0] fraction_a;
    reg  [22:0] fraction_b;
    reg  a_special;
    reg  b_special;
    reg  unlike;
    reg  [7:0] shift_x;
    reg  [7:0] shift_y;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$4$unpack$a_is_large a_is_large(
        .d(a_is_large$d),
        .q(a_is_large$q),
        .clock(a_is_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$unpack$a_is_small a_is_small(
        .d(a_is_small$d),
        .q(a_is_small$q),
        .clock(a_is_small$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$unpack$held_kind held_kind(
        .d(held_kind$d),
        .q(held_kind$q),
        .clock(held_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$unpack$sign_a sign_a(
        .d(sign_a$d),
        .q(sign_a$q),
        .clock(sign_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$unpack$sign_b sign_b(
        .d(sign_b$d),
        .q(sign_b$q),
        .clock(sign_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$unpack$shift_a shift_a(
        .d(shift_a$d),
        .q(shift_a$q),
        .clock(shift_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$unpack$shift_b shift_b(
        .d(shift_b$d),
        .q(shift_b$q),
        .clock(shift_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$unpack$significand_a significand_a(
        .d(significand_a$d),
        .q(significand_a$q),
        .clock(significand_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$unpack$significand_b significand_b(
        .d(significand_b$d),
        .q(significand_b$q),
        .clock(significand_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$unpack$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$unpack$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$unpack$out_distance out_distance(
        .d(out_distance$d),
        .q(out_distance$q),
        .clock(out_distance$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$unpack$out_large out_large(
        .d(out_large$d),
        .q(out_large$q),
        .clock(out_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$4$unpack$out_small out_small(
        .d(out_small$d),
        .q(out_small$q),
        .clock(out_small$clock)
    );
    // Update code
    always @(*) begin
        a_is_large$clock = clock;
        a_is_small$clock = clock;
        held_kind$clock = clock;
        sign_a$clock = clock;
        sign_b$clock = clock;
        shift_a$clock = clock;
        shift_b$clock = clock;
        a_is_large$d = a_is_large$q;
        a_is_small$d = a_is_small$q;
        held_kind$d = held_kind$q;
        sign_a$d = sign_a$q;
        sign_b$d = sign_b$q;
        shift_a$d = shift_a$q;
        shift_b$d = shift_b$q;
        significand_a$clock = clock;
        significand_b$clock = clock;
        significand_a$d = significand_a$q;
        significand_b$d = significand_b$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_distance$clock = clock;
        out_large$clock = clock;
        out_small$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_distance$d = out_distance$q;
        out_large$d = out_large$q;
        out_small$d = out_small$q;
        magnitude_a = a[(32'h0)+:(31)];
        magnitude_b = b[(32'h0)+:(31)];
        at_least = magnitude_a >= magnitude_b;
        a_is_large$d = at_least;
        a_is_small$d = ~at_least;
        exponent_a = a[(32'h17)+:(8)];
        exponent_b = b[(32'h17)+:(8)];
        fraction_a = a[(32'h0)+:(23)];
        fraction_b = b[(32'h0)+:(23)];
        shift_a$d = 32'h1;
        shift_b$d = 32'h1;
        significand_a$d = ((fraction_a) & 24'hffffff);
        significand_b$d = ((fraction_b) & 24'hffffff);
        if (|exponent_a) begin
            shift_a$d = exponent_a;
            significand_a$d = ((fraction_a) & 24'hffffff) | 32'h800000;
        end
        if (|exponent_b) begin
            shift_b$d = exponent_b;
            significand_b$d = ((fraction_b) & 24'hffffff) | 32'h800000;
        end
        sign_a$d = a[32'h1f];
        sign_b$d = b[32'h1f];
        unlike = a[32'h1f] ^ b[32'h1f];
        a_special = &exponent_a;
        b_special = &exponent_b;
        held_kind$d[(64'h0)+:(1)] = 1'b0;
        held_kind$d[(64'h1)+:(1)] = unlike;
        held_kind$d[(64'h2)+:(1)] = (a_special & |fraction_a) | (b_special & |fraction_b) | (a_special & b_special & unlike);
        held_kind$d[(64'h3)+:(1)] = a_special | b_special;
        out_kind$d = held_kind$q;
        out_kind$d[(64'h0)+:(1)] = sign_b$q;
        shift_x = shift_b$q;
        out_large$d = significand_b$q;
        if (a_is_large$q) begin
            out_kind$d[(64'h0)+:(1)] = sign_a$q;
            shift_x = shift_a$q;
            out_large$d = significand_a$q;
        end
        shift_y = shift_b$q;
        out_small$d = significand_b$q;
        if (a_is_small$q) begin
            shift_y = shift_a$q;
            out_small$d = significand_a$q;
        end
        out_exponent$d = shift_x;
        out_distance$d = shift_x - shift_y;
        kind = out_kind$q;
        exponent = out_exponent$q;
        distance = out_distance$q;
        larger = out_large$q;
        smaller = out_small$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$unpack
module iswitch_accel$datapath$accumulator$adders$lane$4$unpack$a_is_large(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$unpack$a_is_large
module iswitch_accel$datapath$accumulator$adders$lane$4$unpack$a_is_small(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$unpack$a_is_small
module iswitch_accel$datapath$accumulator$adders$lane$4$unpack$held_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$unpack$held_kind
module iswitch_accel$datapath$accumulator$adders$lane$4$unpack$out_distance(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$unpack$out_distance
module iswitch_accel$datapath$accumulator$adders$lane$4$unpack$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$unpack$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$4$unpack$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$unpack$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$4$unpack$out_large(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$unpack$out_large
module iswitch_accel$datapath$accumulator$adders$lane$4$unpack$out_small(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$unpack$out_small
module iswitch_accel$datapath$accumulator$adders$lane$4$unpack$shift_a(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$unpack$shift_a
module iswitch_accel$datapath$accumulator$adders$lane$4$unpack$shift_b(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$unpack$shift_b
module iswitch_accel$datapath$accumulator$adders$lane$4$unpack$sign_a(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$unpack$sign_a
module iswitch_accel$datapath$accumulator$adders$lane$4$unpack$sign_b(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$unpack$sign_b
module iswitch_accel$datapath$accumulator$adders$lane$4$unpack$significand_a(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$unpack$significand_a
module iswitch_accel$datapath$accumulator$adders$lane$4$unpack$significand_b(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$4$unpack$significand_b
module iswitch_accel$datapath$accumulator$adders$lane$5(clock,a,b,sum);
    // Module arguments
    input wire  clock;
    input wire  [31:0] a;
    input wire  [31:0] b;
    output reg  [31:0] sum;
    // Stub signals
    reg  unpack$clock;
    reg  [31:0] unpack$a;
    reg  [31:0] unpack$b;
    wire  [3:0] unpack$kind;
    wire  [7:0] unpack$exponent;
    wire  [7:0] unpack$distance;
    wire  [23:0] unpack$larger;
    wire  [23:0] unpack$smaller;
    reg  align$clock;
    reg  [3:0] align$kind_in;
    reg  [7:0] align$exponent_in;
    reg  [7:0] align$distance;
    reg  [23:0] align$larger;
    reg  [23:0] align$smaller;
    wire  [3:0] align$kind;
    wire  [7:0] align$exponent;
    wire  [27:0] align$total;
    reg  normalise$clock;
    reg  [3:0] normalise$kind_in;
    reg  [7:0] normalise$exponent_in;
    reg  [27:0] normalise$total;
    wire  [3:0] normalise$kind;
    wire  [7:0] normalise$exponent;
    wire  [26:0] normalise$fraction;
    reg  round$clock;
    reg  [3:0] round$kind;
    reg  [7:0] round$exponent;
    reg  [26:0] round$fraction;
    wire  [31:0] round$sum;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$5$unpack unpack(
        .clock(unpack$clock),
        .a(unpack$a),
        .b(unpack$b),
        .kind(unpack$kind),
        .exponent(unpack$exponent),
        .distance(unpack$distance),
        .larger(unpack$larger),
        .smaller(unpack$smaller)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$align align(
        .clock(align$clock),
        .kind_in(align$kind_in),
        .exponent_in(align$exponent_in),
        .distance(align$distance),
        .larger(align$larger),
        .smaller(align$smaller),
        .kind(align$kind),
        .exponent(align$exponent),
        .total(align$total)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$normalise normalise(
        .clock(normalise$clock),
        .kind_in(normalise$kind_in),
        .exponent_in(normalise$exponent_in),
        .total(normalise$total),
        .kind(normalise$kind),
        .exponent(normalise$exponent),
        .fraction(normalise$fraction)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$round round(
        .clock(round$clock),
        .kind(round$kind),
        .exponent(round$exponent),
        .fraction(round$fraction),
        .sum(round$sum)
    );
    // Update code
    always @(*) begin
        unpack$clock = clock;
        align$clock = clock;
        normalise$clock = clock;
        round$clock = clock;
        unpack$a = a;
        unpack$b = b;
        align$kind_in = unpack$kind;
        align$exponent_in = unpack$exponent;
        align$distance = unpack$distance;
        align$larger = unpack$larger;
        align$smaller = unpack$smaller;
        normalise$kind_in = align$kind;
        normalise$exponent_in = align$exponent;
        normalise$total = align$total;
        round$kind = normalise$kind;
        round$exponent = normalise$exponent;
        round$fraction = normalise$fraction;
        sum = round$sum;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5
module iswitch_accel$datapath$accumulator$adders$lane$5$align(clock,kind_in,exponent_in,distance,larger,smaller,kind,exponent,total);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind_in;
    input wire  [7:0] exponent_in;
    input wire  [7:0] distance;
    input wire  [23:0] larger;
    input wire  [23:0] smaller;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [27:0] total;
    // Stub signals
    reg  [3:0] aligned_kind$d;
    wire  [3:0] aligned_kind$q;
    reg  aligned_kind$clock;
    reg  [7:0] aligned_exponent$d;
    wire  [7:0] aligned_exponent$q;
    reg  aligned_exponent$clock;
    reg  [23:0] aligned_large$d;
    wire  [23:0] aligned_large$q;
    reg  aligned_large$clock;
    reg  [26:0] aligned_small$d;
    wire  [26:0] aligned_small$q;
    reg  aligned_small$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [27:0] out_total$d;
    wire  [27:0] out_total$q;
    reg  out_total$clock;
    // Local signals
    reg  [26:0] by_0;
    reg  [26:0] by_1;
    reg  [26:0] by_3;
    reg  [26:0] by_7;
    reg  [26:0] by_15;
    reg  [26:0] by_31;
    reg  lost_1;
    reg  lost_3;
    reg  lost_7;
    reg  lost_15;
    reg  lost_31;
    reg  all_lost;
    reg  [28:0] augend;
    reg  [28:0] addend;
    reg  [28:0] complement;
    reg  [28:0] sum;
    reg  [28:0] shifted;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$5$align$aligned_kind aligned_kind(
        .d(aligned_kind$d),
        .q(aligned_kind$q),
        .clock(aligned_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$align$aligned_exponent aligned_exponent(
        .d(aligned_exponent$d),
        .q(aligned_exponent$q),
        .clock(aligned_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$align$aligned_large aligned_large(
        .d(aligned_large$d),
        .q(aligned_large$q),
        .clock(aligned_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$align$aligned_small aligned_small(
        .d(aligned_small$d),
        .q(aligned_small$q),
        .clock(aligned_small$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$align$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$align$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$align$out_total out_total(
        .d(out_total$d),
        .q(out_total$q),
        .clock(out_total$clock)
    );
    // Update code
    always @(*) begin
        aligned_kind$clock = clock;
        aligned_exponent$clock = clock;
        aligned_large$clock = clock;
        aligned_small$clock = clock;
        aligned_kind$d = aligned_kind$q;
        aligned_exponent$d = aligned_exponent$q;
        aligned_large$d = aligned_large$q;
        aligned_small$d = aligned_small$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_total$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_total$d = out_total$q;
        by_0 = ((smaller) & 27'h7ffffff) << 32'h3;
        by_1 = by_0;
        lost_1 = 1'b0;
        if (distance[32'h0]) begin
            by_1 = by_0 >> 32'h1;
            lost_1 = by_0[32'h0];
        end
        by_3 = by_1;
        lost_3 = lost_1;
        if (distance[32'h1]) begin
            by_3 = by_1 >> 32'h2;
            lost_3 = lost_1 | |by_1[(32'h0)+:(2)];
        end
        by_7 = by_3;
        lost_7 = lost_3;
        if (distance[32'h2]) begin
            by_7 = by_3 >> 32'h4;
            lost_7 = lost_3 | |by_3[(32'h0)+:(4)];
        end
        by_15 = by_7;
        lost_15 = lost_7;
        if (distance[32'h3]) begin
            by_15 = by_7 >> 32'h8;
            lost_15 = lost_7 | |by_7[(32'h0)+:(8)];
        end
        by_31 = by_15;
        lost_31 = lost_15;
        if (distance[32'h4]) begin
            by_31 = by_15 >> 32'h10;
            lost_31 = lost_15 | |by_15[(32'h0)+:(16)];
        end
        aligned_small$d = by_31 | ((lost_31) & 27'h7ffffff);
        all_lost = |distance[(32'h5)+:(3)];
        if (all_lost) begin
            aligned_small$d = ((|smaller) & 27'h7ffffff);
        end
        aligned_kind$d = kind_in;
        aligned_exponent$d = exponent_in;
        aligned_large$d = larger;
        shifted = ((aligned_large$q) & 29'h1fffffff) << 32'h4;
        augend = shifted | 32'h1;
        addend = ((aligned_small$q) & 29'h1fffffff) << 32'h1;
        complement = addend;
        if (aligned_kind$q[(64'h1)+:(1)]) begin
            complement = ~addend;
        end
        sum = augend + complement;
        out_total$d = sum[(32'h1)+:(28)];
        out_kind$d = aligned_kind$q;
        out_exponent$d = aligned_exponent$q;
        kind = out_kind$q;
        exponent = out_exponent$q;
        total = out_total$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$align
module iswitch_accel$datapath$accumulator$adders$lane$5$align$aligned_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$align$aligned_exponent
module iswitch_accel$datapath$accumulator$adders$lane$5$align$aligned_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$align$aligned_kind
module iswitch_accel$datapath$accumulator$adders$lane$5$align$aligned_large(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$align$aligned_large
module iswitch_accel$datapath$accumulator$adders$lane$5$align$aligned_small(d,q,clock);
    // Module arguments
    input wire  [26:0] d;
    output reg  [26:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 27'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$align$aligned_small
module iswitch_accel$datapath$accumulator$adders$lane$5$align$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$align$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$5$align$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$align$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$5$align$out_total(d,q,clock);
    // Module arguments
    input wire  [27:0] d;
    output reg  [27:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 28'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$align$out_total
module iswitch_accel$datapath$accumulator$adders$lane$5$normalise(clock,kind_in,exponent_in,total,kind,exponent,fraction);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind_in;
    input wire  [7:0] exponent_in;
    input wire  [27:0] total;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [26:0] fraction;
    // Stub signals
    reg  [3:0] counted_kind$d;
    wire  [3:0] counted_kind$q;
    reg  counted_kind$clock;
    reg  [7:0] counted_exponent$d;
    wire  [7:0] counted_exponent$q;
    reg  counted_exponent$clock;
    reg  [27:0] counted_total$d;
    wire  [27:0] counted_total$q;
    reg  counted_total$clock;
    reg  [4:0] shift$d;
    wire  [4:0] shift$q;
    reg  shift$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [26:0] out_fraction$d;
    wire  [26:0] out_fraction$q;
    reg  out_fraction$clock;
    // Local signals
    reg  [27:0] padded;
    reg  [3:0] group$0;
    reg  [3:0] group$1;
    reg  [3:0] group$2;
    reg  [3:0] group$3;
    reg  [3:0] group$4;
    reg  [3:0] group$5;
    reg  [3:0] group$6;
    reg  [4:0] within$0;
    reg  [4:0] within$1;
    reg  [4:0] within$2;
    reg  [4:0] within$3;
    reg  [4:0] within$4;
    reg  [4:0] within$5;
    reg  [4:0] within$6;
    reg  [4:0] groups_before;
    reg  [4:0] zeros_within;
    reg  [4:0] zeros;
    reg  [7:0] wide_zeros;
    reg  [7:0] most;
    reg  [26:0] by_0;
    reg  [26:0] by_1;
    reg  [26:0] by_3;
    reg  [26:0] by_7;
    reg  [26:0] by_15;
    reg  [26:0] by_31;
    reg  [7:0] wide_shift;
    reg  lowest;
    reg  [26:0] carried;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$5$normalise$counted_kind counted_kind(
        .d(counted_kind$d),
        .q(counted_kind$q),
        .clock(counted_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$normalise$counted_exponent counted_exponent(
        .d(counted_exponent$d),
        .q(counted_exponent$q),
        .clock(counted_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$normalise$counted_total counted_total(
        .d(counted_total$d),
        .q(counted_total$q),
        .clock(counted_total$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$normalise$shift shift(
        .d(shift$d),
        .q(shift$q),
        .clock(shift$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$normalise$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$normalise$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$normalise$out_fraction out_fraction(
        .d(out_fraction$d),
        .q(out_fraction$q),
        .clock(out_fraction$clock)
    );
    // Update code
    always @(*) begin
        counted_kind$clock = clock;
        counted_exponent$clock = clock;
        counted_total$clock = clock;
        shift$clock = clock;
        counted_kind$d = counted_kind$q;
        counted_exponent$d = counted_exponent$q;
        counted_total$d = counted_total$q;
        shift$d = shift$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_fraction$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_fraction$d = out_fraction$q;
        padded = total << 32'h1;
        groups_before = 32'h1c;
        zeros_within = 32'h3;
        group$0 = padded[(32'h4 * 0)+:(4)];
        within$0 = 32'h3;
        if (group$0[32'h1]) begin
            within$0 = 32'h2;
        end
        if (group$0[32'h2]) begin
            within$0 = 32'h1;
        end
        if (group$0[32'h3]) begin
            within$0 = 32'h0;
        end
        if (|group$0) begin
            groups_before = (32'h4 * (32'h6 - 0));
            zeros_within = within$0;
        end
        group$1 = padded[(32'h4 * 1)+:(4)];
        within$1 = 32'h3;
        if (group$1[32'h1]) begin
            within$1 = 32'h2;
        end
        if (group$1[32'h2]) begin
            within$1 = 32'h1;
        end
        if (group$1[32'h3]) begin
            within$1 = 32'h0;
        end
        if (|group$1) begin
            groups_before = (32'h4 * (32'h6 - 1));
            zeros_within = within$1;
        end
        group$2 = padded[(32'h4 * 2)+:(4)];
        within$2 = 32'h3;
        if (group$2[32'h1]) begin
            within$2 = 32'h2;
        end
        if (group$2[32'h2]) begin
            within$2 = 32'h1;
        end
        if (group$2[32'h3]) begin
            within$2 = 32'h0;
        end
        if (|group$2) begin
            groups_before = (32'h4 * (32'h6 - 2));
            zeros_within = within$2;
        end
        group$3 = padded[(32'h4 * 3)+:(4)];
        within$3 = 32'h3;
        if (group$3[32'h1]) begin
            within$3 = 32'h2;
        end
        if (group$3[32'h2]) begin
            within$3 = 32'h1;
        end
        if (group$3[32'h3]) begin
            within$3 = 32'h0;
        end
        if (|group$3) begin
            groups_before = (32'h4 * (32'h6 - 3));
            zeros_within = within$3;
        end
        group$4 = padded[(32'h4 * 4)+:(4)];
        within$4 = 32'h3;
        if (group$4[32'h1]) begin
            within$4 = 32'h2;
        end
        if (group$4[32'h2]) begin
            within$4 = 32'h1;
        end
        if (group$4[32'h3]) begin
            within$4 = 32'h0;
        end
        if (|group$4) begin
            groups_before = (32'h4 * (32'h6 - 4));
            zeros_within = within$4;
        end
        group$5 = padded[(32'h4 * 5)+:(4)];
        within$5 = 32'h3;
        if (group$5[32'h1]) begin
            within$5 = 32'h2;
        end
        if (group$5[32'h2]) begin
            within$5 = 32'h1;
        end
        if (group$5[32'h3]) begin
            within$5 = 32'h0;
        end
        if (|group$5) begin
            groups_before = (32'h4 * (32'h6 - 5));
            zeros_within = within$5;
        end
        group$6 = padded[(32'h4 * 6)+:(4)];
        within$6 = 32'h3;
        if (group$6[32'h1]) begin
            within$6 = 32'h2;
        end
        if (group$6[32'h2]) begin
            within$6 = 32'h1;
        end
        if (group$6[32'h3]) begin
            within$6 = 32'h0;
        end
        if (|group$6) begin
            groups_before = (32'h4 * (32'h6 - 6));
            zeros_within = within$6;
        end
        zeros = groups_before | zeros_within;
        most = exponent_in - 32'h1;
        wide_zeros = ((zeros) & 8'hff);
        shift$d = zeros;
        if (wide_zeros > most) begin
            shift$d = most[(32'h0)+:(5)];
        end
        counted_kind$d = kind_in;
        counted_exponent$d = exponent_in;
        counted_total$d = total;
        by_0 = counted_total$q[(32'h0)+:(27)];
        by_1 = by_0;
        if (shift$q[32'h0]) begin
            by_1 = by_0 << 32'h1;
        end
        by_3 = by_1;
        if (shift$q[32'h1]) begin
            by_3 = by_1 << 32'h2;
        end
        by_7 = by_3;
        if (shift$q[32'h2]) begin
            by_7 = by_3 << 32'h4;
        end
        by_15 = by_7;
        if (shift$q[32'h3]) begin
            by_15 = by_7 << 32'h8;
        end
        by_31 = by_15;
        if (shift$q[32'h4]) begin
            by_31 = by_15 << 32'h10;
        end
        wide_shift = ((shift$q) & 8'hff);
        lowest = counted_total$q[(32'h0)+:(1)];
        carried = counted_total$q[(32'h1)+:(27)];
        out_fraction$d = by_31;
        out_exponent$d = counted_exponent$q - wide_shift;
        if (counted_total$q[32'h1b]) begin
            out_fraction$d = carried | ((lowest) & 27'h7ffffff);
            out_exponent$d = counted_exponent$q + 32'h1;
        end
        out_kind$d = counted_kind$q;
        if (counted_kind$q[(64'h1)+:(1)] & ~|counted_total$q) begin
            out_kind$d[(64'h0)+:(1)] = 1'b0;
        end
        kind = out_kind$q;
        exponent = out_exponent$q;
        fraction = out_fraction$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$normalise
module iswitch_accel$datapath$accumulator$adders$lane$5$normalise$counted_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$normalise$counted_exponent
module iswitch_accel$datapath$accumulator$adders$lane$5$normalise$counted_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$normalise$counted_kind
module iswitch_accel$datapath$accumulator$adders$lane$5$normalise$counted_total(d,q,clock);
    // Module arguments
    input wire  [27:0] d;
    output reg  [27:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 28'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$normalise$counted_total
module iswitch_accel$datapath$accumulator$adders$lane$5$normalise$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$normalise$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$5$normalise$out_fraction(d,q,clock);
    // Module arguments
    input wire  [26:0] d;
    output reg  [26:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 27'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$normalise$out_fraction
module iswitch_accel$datapath$accumulator$adders$lane$5$normalise$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$normalise$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$5$normalise$shift(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$normalise$shift
module iswitch_accel$datapath$accumulator$adders$lane$5$round(clock,kind,exponent,fraction,sum);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind;
    input wire  [7:0] exponent;
    input wire  [26:0] fraction;
    output reg  [31:0] sum;
    // Stub signals
    reg  [31:0] out_sum$d;
    wire  [31:0] out_sum$q;
    reg  out_sum$clock;
    // Local signals
    reg  [22:0] kept;
    reg  [30:0] field;
    reg  [30:0] truncated;
    reg  up;
    reg  [30:0] rounded;
    reg  largest;
    reg  overflows;
    reg  [31:0] magnitude;
    reg  [31:0] sign;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$5$round$out_sum out_sum(
        .d(out_sum$d),
        .q(out_sum$q),
        .clock(out_sum$clock)
    );
    // Update code
    always @(*) begin
        out_sum$clock = clock;
        out_sum$d = out_sum$q;
        kept = fraction[(32'h3)+:(23)];
        field = ((exponent) & 31'h7fffffff) << 32'h17;
        truncated = ((kept) & 31'h7fffffff);
        if (fraction[32'h1a]) begin
            truncated = ((kept) & 31'h7fffffff) | field;
        end
        up = fraction[32'h2] & (fraction[32'h3] | fraction[32'h1] | fraction[32'h0]);
        rounded = truncated + ((up) & 31'h7fffffff);
        largest = (exponent == 32'hfe) & &kept;
        overflows = fraction[32'h1a] & (&exponent | (largest & up));
        magnitude = ((rounded) & 32'hffffffff);
        if (overflows | kind[(64'h3)+:(1)]) begin
            magnitude = 32'h7f800000;
        end
        sign = ((kind[(64'h0)+:(1)]) & 32'hffffffff) << 32'h1f;
        out_sum$d = magnitude | sign;
        if (kind[(64'h2)+:(1)]) begin
            out_sum$d = 32'h7fc00000;
        end
        sum = out_sum$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$round
module iswitch_accel$datapath$accumulator$adders$lane$5$round$out_sum(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$round$out_sum
module iswitch_accel$datapath$accumulator$adders$lane$5$unpack(clock,a,b,kind,exponent,distance,larger,smaller);
    // Module arguments
    input wire  clock;
    input wire  [31:0] a;
    input wire  [31:0] b;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [7:0] distance;
    output reg  [23:0] larger;
    output reg  [23:0] smaller;
    // Stub signals
    reg  a_is_large$d;
    wire  a_is_large$q;
    reg  a_is_large$clock;
    reg  a_is_small$d;
    wire  a_is_small$q;
    reg  a_is_small$clock;
    reg  [3:0] held_kind$d;
    wire  [3:0] held_kind$q;
    reg  held_kind$clock;
    reg  sign_a$d;
    wire  sign_a$q;
    reg  sign_a$clock;
    reg  sign_b$d;
    wire  sign_b$q;
    reg  sign_b$clock;
    reg  [7:0] shift_a$d;
    wire  [7:0] shift_a$q;
    reg  shift_a$clock;
    reg  [7:0] shift_b$d;
    wire  [7:0] shift_b$q;
    reg  shift_b$clock;
    reg  [23:0] significand_a$d;
    wire  [23:0] significand_a$q;
    reg  significand_a$clock;
    reg  [23:0] significand_b$d;
    wire  [23:0] significand_b$q;
    reg  significand_b$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [7:0] out_distance$d;
    wire  [7:0] out_distance$q;
    reg  out_distance$clock;
    reg  [23:0] out_large$d;
    wire  [23:0] out_large$q;
    reg  out_large$clock;
    reg  [23:0] out_small$d;
    wire  [23:0] out_small$q;
    reg  out_small$clock;
    // Local signals
    reg  [30:0] magnitude_a;
    reg  [30:0] magnitude_b;
    reg  at_least;
    reg  [7:0] exponent_a;
    reg  [7:0] exponent_b;
    reg  [22:0] fraction_a;
    reg  [22:0] fraction_b;
    reg  a_special;
    reg  b_special;
    reg  unlike;
    reg  [7:0] shift_x;
    reg  [7:0] shift_y;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$5$unpack$a_is_large a_is_large(
        .d(a_is_large$d),
        .q(a_is_large$q),
        .clock(a_is_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$unpack$a_is_small a_is_small(
        .d(a_is_small$d),
        .q(a_is_small$q),
        .clock(a_is_small$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$unpack$held_kind held_kind(
        .d(held_kind$d),
        .q(held_kind$q),
        .clock(held_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$unpack$sign_a sign_a(
        .d(sign_a$d),
        .q(sign_a$q),
        .clock(sign_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$unpack$sign_b sign_b(
        .d(sign_b$d),
        .q(sign_b$q),
        .clock(sign_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$unpack$shift_a shift_a(
        .d(shift_a$d),
        .q(shift_a$q),
        .clock(shift_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$unpack$shift_b shift_b(
        .d(shift_b$d),
        .q(shift_b$q),
        .clock(shift_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$unpack$significand_a significand_a(
        .d(significand_a$d),
        .q(significand_a$q),
        .clock(significand_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$unpack$significand_b significand_b(
        .d(significand_b$d),
        .q(significand_b$q),
        .clock(significand_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$unpack$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$unpack$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$unpack$out_distance out_distance(
        .d(out_distance$d),
        .q(out_distance$q),
        .clock(out_distance$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$unpack$out_large out_large(
        .d(out_large$d),
        .q(out_large$q),
        .clock(out_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$5$unpack$out_small out_small(
        .d(out_small$d),
        .q(out_small$q),
        .clock(out_small$clock)
    );
    // Update code
    always @(*) begin
        a_is_large$clock = clock;
        a_is_small$clock = clock;
        held_kind$clock = clock;
        sign_a$clock = clock;
        sign_b$clock = clock;
        shift_a$clock = clock;
        shift_b$clock = clock;
        a_is_large$d = a_is_large$q;
        a_is_small$d = a_is_small$q;
        held_kind$d = held_kind$q;
        sign_a$d = sign_a$q;
        sign_b$d = sign_b$q;
        shift_a$d = shift_a$q;
        shift_b$d = shift_b$q;
        significand_a$clock = clock;
        significand_b$clock = clock;
        significand_a$d = significand_a$q;
        significand_b$d = significand_b$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_distance$clock = clock;
        out_large$clock = clock;
        out_small$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_distance$d = out_distance$q;
        out_large$d = out_large$q;
        out_small$d = out_small$q;
        magnitude_a = a[(32'h0)+:(31)];
        magnitude_b = b[(32'h0)+:(31)];
        at_least = magnitude_a >= magnitude_b;
        a_is_large$d = at_least;
        a_is_small$d = ~at_least;
        exponent_a = a[(32'h17)+:(8)];
        exponent_b = b[(32'h17)+:(8)];
        fraction_a = a[(32'h0)+:(23)];
        fraction_b = b[(32'h0)+:(23)];
        shift_a$d = 32'h1;
        shift_b$d = 32'h1;
        significand_a$d = ((fraction_a) & 24'hffffff);
        significand_b$d = ((fraction_b) & 24'hffffff);
        if (|exponent_a) begin
            shift_a$d = exponent_a;
            significand_a$d = ((fraction_a) & 24'hffffff) | 32'h800000;
        end
        if (|exponent_b) begin
            shift_b$d = exponent_b;
            significand_b$d = ((fraction_b) & 24'hffffff) | 32'h800000;
        end
        sign_a$d = a[32'h1f];
        sign_b$d = b[32'h1f];
        unlike = a[32'h1f] ^ b[32'h1f];
        a_special = &exponent_a;
        b_special = &exponent_b;
        held_kind$d[(64'h0)+:(1)] = 1'b0;
        held_kind$d[(64'h1)+:(1)] = unlike;
        held_kind$d[(64'h2)+:(1)] = (a_special & |fraction_a) | (b_special & |fraction_b) | (a_special & b_special & unlike);
        held_kind$d[(64'h3)+:(1)] = a_special | b_special;
        out_kind$d = held_kind$q;
        out_kind$d[(64'h0)+:(1)] = sign_b$q;
        shift_x = shift_b$q;
        out_large$d = significand_b$q;
        if (a_is_large$q) begin
            out_kind$d[(64'h0)+:(1)] = sign_a$q;
            shift_x = shift_a$q;
            out_large$d = significand_a$q;
        end
        shift_y = shift_b$q;
        out_small$d = significand_b$q;
        if (a_is_small$q) begin
            shift_y = shift_a$q;
            out_small$d = significand_a$q;
        end
        out_exponent$d = shift_x;
        out_distance$d = shift_x - shift_y;
        kind = out_kind$q;
        exponent = out_exponent$q;
        distance = out_distance$q;
        larger = out_large$q;
        smaller = out_small$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$unpack
module iswitch_accel$datapath$accumulator$adders$lane$5$unpack$a_is_large(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$unpack$a_is_large
module iswitch_accel$datapath$accumulator$adders$lane$5$unpack$a_is_small(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$unpack$a_is_small
module iswitch_accel$datapath$accumulator$adders$lane$5$unpack$held_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$unpack$held_kind
module iswitch_accel$datapath$accumulator$adders$lane$5$unpack$out_distance(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$unpack$out_distance
module iswitch_accel$datapath$accumulator$adders$lane$5$unpack$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$unpack$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$5$unpack$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$unpack$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$5$unpack$out_large(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$unpack$out_large
module iswitch_accel$datapath$accumulator$adders$lane$5$unpack$out_small(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$unpack$out_small
module iswitch_accel$datapath$accumulator$adders$lane$5$unpack$shift_a(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$unpack$shift_a
module iswitch_accel$datapath$accumulator$adders$lane$5$unpack$shift_b(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$unpack$shift_b
module iswitch_accel$datapath$accumulator$adders$lane$5$unpack$sign_a(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$unpack$sign_a
module iswitch_accel$datapath$accumulator$adders$lane$5$unpack$sign_b(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$unpack$sign_b
module iswitch_accel$datapath$accumulator$adders$lane$5$unpack$significand_a(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$unpack$significand_a
module iswitch_accel$datapath$accumulator$adders$lane$5$unpack$significand_b(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$5$unpack$significand_b
module iswitch_accel$datapath$accumulator$adders$lane$6(clock,a,b,sum);
    // Module arguments
    input wire  clock;
    input wire  [31:0] a;
    input wire  [31:0] b;
    output reg  [31:0] sum;
    // Stub signals
    reg  unpack$clock;
    reg  [31:0] unpack$a;
    reg  [31:0] unpack$b;
    wire  [3:0] unpack$kind;
    wire  [7:0] unpack$exponent;
    wire  [7:0] unpack$distance;
    wire  [23:0] unpack$larger;
    wire  [23:0] unpack$smaller;
    reg  align$clock;
    reg  [3:0] align$kind_in;
    reg  [7:0] align$exponent_in;
    reg  [7:0] align$distance;
    reg  [23:0] align$larger;
    reg  [23:0] align$smaller;
    wire  [3:0] align$kind;
    wire  [7:0] align$exponent;
    wire  [27:0] align$total;
    reg  normalise$clock;
    reg  [3:0] normalise$kind_in;
    reg  [7:0] normalise$exponent_in;
    reg  [27:0] normalise$total;
    wire  [3:0] normalise$kind;
    wire  [7:0] normalise$exponent;
    wire  [26:0] normalise$fraction;
    reg  round$clock;
    reg  [3:0] round$kind;
    reg  [7:0] round$exponent;
    reg  [26:0] round$fraction;
    wire  [31:0] round$sum;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$6$unpack unpack(
        .clock(unpack$clock),
        .a(unpack$a),
        .b(unpack$b),
        .kind(unpack$kind),
        .exponent(unpack$exponent),
        .distance(unpack$distance),
        .larger(unpack$larger),
        .smaller(unpack$smaller)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$align align(
        .clock(align$clock),
        .kind_in(align$kind_in),
        .exponent_in(align$exponent_in),
        .distance(align$distance),
        .larger(align$larger),
        .smaller(align$smaller),
        .kind(align$kind),
        .exponent(align$exponent),
        .total(align$total)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$normalise normalise(
        .clock(normalise$clock),
        .kind_in(normalise$kind_in),
        .exponent_in(normalise$exponent_in),
        .total(normalise$total),
        .kind(normalise$kind),
        .exponent(normalise$exponent),
        .fraction(normalise$fraction)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$round round(
        .clock(round$clock),
        .kind(round$kind),
        .exponent(round$exponent),
        .fraction(round$fraction),
        .sum(round$sum)
    );
    // Update code
    always @(*) begin
        unpack$clock = clock;
        align$clock = clock;
        normalise$clock = clock;
        round$clock = clock;
        unpack$a = a;
        unpack$b = b;
        align$kind_in = unpack$kind;
        align$exponent_in = unpack$exponent;
        align$distance = unpack$distance;
        align$larger = unpack$larger;
        align$smaller = unpack$smaller;
        normalise$kind_in = align$kind;
        normalise$exponent_in = align$exponent;
        normalise$total = align$total;
        round$kind = normalise$kind;
        round$exponent = normalise$exponent;
        round$fraction = normalise$fraction;
        sum = round$sum;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6
module iswitch_accel$datapath$accumulator$adders$lane$6$align(clock,kind_in,exponent_in,distance,larger,smaller,kind,exponent,total);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind_in;
    input wire  [7:0] exponent_in;
    input wire  [7:0] distance;
    input wire  [23:0] larger;
    input wire  [23:0] smaller;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [27:0] total;
    // Stub signals
    reg  [3:0] aligned_kind$d;
    wire  [3:0] aligned_kind$q;
    reg  aligned_kind$clock;
    reg  [7:0] aligned_exponent$d;
    wire  [7:0] aligned_exponent$q;
    reg  aligned_exponent$clock;
    reg  [23:0] aligned_large$d;
    wire  [23:0] aligned_large$q;
    reg  aligned_large$clock;
    reg  [26:0] aligned_small$d;
    wire  [26:0] aligned_small$q;
    reg  aligned_small$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [27:0] out_total$d;
    wire  [27:0] out_total$q;
    reg  out_total$clock;
    // Local signals
    reg  [26:0] by_0;
    reg  [26:0] by_1;
    reg  [26:0] by_3;
    reg  [26:0] by_7;
    reg  [26:0] by_15;
    reg  [26:0] by_31;
    reg  lost_1;
    reg  lost_3;
    reg  lost_7;
    reg  lost_15;
    reg  lost_31;
    reg  all_lost;
    reg  [28:0] augend;
    reg  [28:0] addend;
    reg  [28:0] complement;
    reg  [28:0] sum;
    reg  [28:0] shifted;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$6$align$aligned_kind aligned_kind(
        .d(aligned_kind$d),
        .q(aligned_kind$q),
        .clock(aligned_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$align$aligned_exponent aligned_exponent(
        .d(aligned_exponent$d),
        .q(aligned_exponent$q),
        .clock(aligned_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$align$aligned_large aligned_large(
        .d(aligned_large$d),
        .q(aligned_large$q),
        .clock(aligned_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$align$aligned_small aligned_small(
        .d(aligned_small$d),
        .q(aligned_small$q),
        .clock(aligned_small$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$align$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$align$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$align$out_total out_total(
        .d(out_total$d),
        .q(out_total$q),
        .clock(out_total$clock)
    );
    // Update code
    always @(*) begin
        aligned_kind$clock = clock;
        aligned_exponent$clock = clock;
        aligned_large$clock = clock;
        aligned_small$clock = clock;
        aligned_kind$d = aligned_kind$q;
        aligned_exponent$d = aligned_exponent$q;
        aligned_large$d = aligned_large$q;
        aligned_small$d = aligned_small$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_total$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_total$d = out_total$q;
        by_0 = ((smaller) & 27'h7ffffff) << 32'h3;
        by_1 = by_0;
        lost_1 = 1'b0;
        if (distance[32'h0]) begin
            by_1 = by_0 >> 32'h1;
            lost_1 = by_0[32'h0];
        end
        by_3 = by_1;
        lost_3 = lost_1;
        if (distance[32'h1]) begin
            by_3 = by_1 >> 32'h2;
            lost_3 = lost_1 | |by_1[(32'h0)+:(2)];
        end
        by_7 = by_3;
        lost_7 = lost_3;
        if (distance[32'h2]) begin
            by_7 = by_3 >> 32'h4;
            lost_7 = lost_3 | |by_3[(32'h0)+:(4)];
        end
        by_15 = by_7;
        lost_15 = lost_7;
        if (distance[32'h3]) begin
            by_15 = by_7 >> 32'h8;
            lost_15 = lost_7 | |by_7[(32'h0)+:(8)];
        end
        by_31 = by_15;
        lost_31 = lost_15;
        if (distance[32'h4]) begin
            by_31 = by_15 >> 32'h10;
            lost_31 = lost_15 | |by_15[(32'h0)+:(16)];
        end
        aligned_small$d = by_31 | ((lost_31) & 27'h7ffffff);
        all_lost = |distance[(32'h5)+:(3)];
        if (all_lost) begin
            aligned_small$d = ((|smaller) & 27'h7ffffff);
        end
        aligned_kind$d = kind_in;
        aligned_exponent$d = exponent_in;
        aligned_large$d = larger;
        shifted = ((aligned_large$q) & 29'h1fffffff) << 32'h4;
        augend = shifted | 32'h1;
        addend = ((aligned_small$q) & 29'h1fffffff) << 32'h1;
        complement = addend;
        if (aligned_kind$q[(64'h1)+:(1)]) begin
            complement = ~addend;
        end
        sum = augend + complement;
        out_total$d = sum[(32'h1)+:(28)];
        out_kind$d = aligned_kind$q;
        out_exponent$d = aligned_exponent$q;
        kind = out_kind$q;
        exponent = out_exponent$q;
        total = out_total$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$align
module iswitch_accel$datapath$accumulator$adders$lane$6$align$aligned_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$align$aligned_exponent
module iswitch_accel$datapath$accumulator$adders$lane$6$align$aligned_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$align$aligned_kind
module iswitch_accel$datapath$accumulator$adders$lane$6$align$aligned_large(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$align$aligned_large
module iswitch_accel$datapath$accumulator$adders$lane$6$align$aligned_small(d,q,clock);
    // Module arguments
    input wire  [26:0] d;
    output reg  [26:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 27'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$align$aligned_small
module iswitch_accel$datapath$accumulator$adders$lane$6$align$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$align$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$6$align$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$align$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$6$align$out_total(d,q,clock);
    // Module arguments
    input wire  [27:0] d;
    output reg  [27:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 28'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$align$out_total
module iswitch_accel$datapath$accumulator$adders$lane$6$normalise(clock,kind_in,exponent_in,total,kind,exponent,fraction);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind_in;
    input wire  [7:0] exponent_in;
    input wire  [27:0] total;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [26:0] fraction;
    // Stub signals
    reg  [3:0] counted_kind$d;
    wire  [3:0] counted_kind$q;
    reg  counted_kind$clock;
    reg  [7:0] counted_exponent$d;
    wire  [7:0] counted_exponent$q;
    reg  counted_exponent$clock;
    reg  [27:0] counted_total$d;
    wire  [27:0] counted_total$q;
    reg  counted_total$clock;
    reg  [4:0] shift$d;
    wire  [4:0] shift$q;
    reg  shift$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [26:0] out_fraction$d;
    wire  [26:0] out_fraction$q;
    reg  out_fraction$clock;
    // Local signals
    reg  [27:0] padded;
    reg  [3:0] group$0;
    reg  [3:0] group$1;
    reg  [3:0] group$2;
    reg  [3:0] group$3;
    reg  [3:0] group$4;
    reg  [3:0] group$5;
    reg  [3:0] group$6;
    reg  [4:0] within$0;
    reg  [4:0] within$1;
    reg  [4:0] within$2;
    reg  [4:0] within$3;
    reg  [4:0] within$4;
    reg  [4:0] within$5;
    reg  [4:0] within$6;
    reg  [4:0] groups_before;
    reg  [4:0] zeros_within;
    reg  [4:0] zeros;
    reg  [7:0] wide_zeros;
    reg  [7:0] most;
    reg  [26:0] by_0;
    reg  [26:0] by_1;
    reg  [26:0] by_3;
    reg  [26:0] by_7;
    reg  [26:0] by_15;
    reg  [26:0] by_31;
    reg  [7:0] wide_shift;
    reg  lowest;
    reg  [26:0] carried;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$6$normalise$counted_kind counted_kind(
        .d(counted_kind$d),
        .q(counted_kind$q),
        .clock(counted_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$normalise$counted_exponent counted_exponent(
        .d(counted_exponent$d),
        .q(counted_exponent$q),
        .clock(counted_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$normalise$counted_total counted_total(
        .d(counted_total$d),
        .q(counted_total$q),
        .clock(counted_total$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$normalise$shift shift(
        .d(shift$d),
        .q(shift$q),
        .clock(shift$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$normalise$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$normalise$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$normalise$out_fraction out_fraction(
        .d(out_fraction$d),
        .q(out_fraction$q),
        .clock(out_fraction$clock)
    );
    // Update code
    always @(*) begin
        counted_kind$clock = clock;
        counted_exponent$clock = clock;
        counted_total$clock = clock;
        shift$clock = clock;
        counted_kind$d = counted_kind$q;
        counted_exponent$d = counted_exponent$q;
        counted_total$d = counted_total$q;
        shift$d = shift$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_fraction$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_fraction$d = out_fraction$q;
        padded = total << 32'h1;
        groups_before = 32'h1c;
        zeros_within = 32'h3;
        group$0 = padded[(32'h4 * 0)+:(4)];
        within$0 = 32'h3;
        if (group$0[32'h1]) begin
            within$0 = 32'h2;
        end
        if (group$0[32'h2]) begin
            within$0 = 32'h1;
        end
        if (group$0[32'h3]) begin
            within$0 = 32'h0;
        end
        if (|group$0) begin
            groups_before = (32'h4 * (32'h6 - 0));
            zeros_within = within$0;
        end
        group$1 = padded[(32'h4 * 1)+:(4)];
        within$1 = 32'h3;
        if (group$1[32'h1]) begin
            within$1 = 32'h2;
        end
        if (group$1[32'h2]) begin
            within$1 = 32'h1;
        end
        if (group$1[32'h3]) begin
            within$1 = 32'h0;
        end
        if (|group$1) begin
            groups_before = (32'h4 * (32'h6 - 1));
            zeros_within = within$1;
        end
        group$2 = padded[(32'h4 * 2)+:(4)];
        within$2 = 32'h3;
        if (group$2[32'h1]) begin
            within$2 = 32'h2;
        end
        if (group$2[32'h2]) begin
            within$2 = 32'h1;
        end
        if (group$2[32'h3]) begin
            within$2 = 32'h0;
        end
        if (|group$2) begin
            groups_before = (32'h4 * (32'h6 - 2));
            zeros_within = within$2;
        end
        group$3 = padded[(32'h4 * 3)+:(4)];
        within$3 = 32'h3;
        if (group$3[32'h1]) begin
            within$3 = 32'h2;
        end
        if (group$3[32'h2]) begin
            within$3 = 32'h1;
        end
        if (group$3[32'h3]) begin
            within$3 = 32'h0;
        end
        if (|group$3) begin
            groups_before = (32'h4 * (32'h6 - 3));
            zeros_within = within$3;
        end
        group$4 = padded[(32'h4 * 4)+:(4)];
        within$4 = 32'h3;
        if (group$4[32'h1]) begin
            within$4 = 32'h2;
        end
        if (group$4[32'h2]) begin
            within$4 = 32'h1;
        end
        if (group$4[32'h3]) begin
            within$4 = 32'h0;
        end
        if (|group$4) begin
            groups_before = (32'h4 * (32'h6 - 4));
            zeros_within = within$4;
        end
        group$5 = padded[(32'h4 * 5)+:(4)];
        within$5 = 32'h3;
        if (group$5[32'h1]) begin
            within$5 = 32'h2;
        end
        if (group$5[32'h2]) begin
            within$5 = 32'h1;
        end
        if (group$5[32'h3]) begin
            within$5 = 32'h0;
        end
        if (|group$5) begin
            groups_before = (32'h4 * (32'h6 - 5));
            zeros_within = within$5;
        end
        group$6 = padded[(32'h4 * 6)+:(4)];
        within$6 = 32'h3;
        if (group$6[32'h1]) begin
            within$6 = 32'h2;
        end
        if (group$6[32'h2]) begin
            within$6 = 32'h1;
        end
        if (group$6[32'h3]) begin
            within$6 = 32'h0;
        end
        if (|group$6) begin
            groups_before = (32'h4 * (32'h6 - 6));
            zeros_within = within$6;
        end
        zeros = groups_before | zeros_within;
        most = exponent_in - 32'h1;
        wide_zeros = ((zeros) & 8'hff);
        shift$d = zeros;
        if (wide_zeros > most) begin
            shift$d = most[(32'h0)+:(5)];
        end
        counted_kind$d = kind_in;
        counted_exponent$d = exponent_in;
        counted_total$d = total;
        by_0 = counted_total$q[(32'h0)+:(27)];
        by_1 = by_0;
        if (shift$q[32'h0]) begin
            by_1 = by_0 << 32'h1;
        end
        by_3 = by_1;
        if (shift$q[32'h1]) begin
            by_3 = by_1 << 32'h2;
        end
        by_7 = by_3;
        if (shift$q[32'h2]) begin
            by_7 = by_3 << 32'h4;
        end
        by_15 = by_7;
        if (shift$q[32'h3]) begin
            by_15 = by_7 << 32'h8;
        end
        by_31 = by_15;
        if (shift$q[32'h4]) begin
            by_31 = by_15 << 32'h10;
        end
        wide_shift = ((shift$q) & 8'hff);
        lowest = counted_total$q[(32'h0)+:(1)];
        carried = counted_total$q[(32'h1)+:(27)];
        out_fraction$d = by_31;
        out_exponent$d = counted_exponent$q - wide_shift;
        if (counted_total$q[32'h1b]) begin
            out_fraction$d = carried | ((lowest) & 27'h7ffffff);
            out_exponent$d = counted_exponent$q + 32'h1;
        end
        out_kind$d = counted_kind$q;
        if (counted_kind$q[(64'h1)+:(1)] & ~|counted_total$q) begin
            out_kind$d[(64'h0)+:(1)] = 1'b0;
        end
        kind = out_kind$q;
        exponent = out_exponent$q;
        fraction = out_fraction$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$normalise
module iswitch_accel$datapath$accumulator$adders$lane$6$normalise$counted_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$normalise$counted_exponent
module iswitch_accel$datapath$accumulator$adders$lane$6$normalise$counted_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$normalise$counted_kind
module iswitch_accel$datapath$accumulator$adders$lane$6$normalise$counted_total(d,q,clock);
    // Module arguments
    input wire  [27:0] d;
    output reg  [27:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 28'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$normalise$counted_total
module iswitch_accel$datapath$accumulator$adders$lane$6$normalise$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$normalise$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$6$normalise$out_fraction(d,q,clock);
    // Module arguments
    input wire  [26:0] d;
    output reg  [26:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 27'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$normalise$out_fraction
module iswitch_accel$datapath$accumulator$adders$lane$6$normalise$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$normalise$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$6$normalise$shift(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$normalise$shift
module iswitch_accel$datapath$accumulator$adders$lane$6$round(clock,kind,exponent,fraction,sum);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind;
    input wire  [7:0] exponent;
    input wire  [26:0] fraction;
    output reg  [31:0] sum;
    // Stub signals
    reg  [31:0] out_sum$d;
    wire  [31:0] out_sum$q;
    reg  out_sum$clock;
    // Local signals
    reg  [22:0] kept;
    reg  [30:0] field;
    reg  [30:0] truncated;
    reg  up;
    reg  [30:0] rounded;
    reg  largest;
    reg  overflows;
    reg  [31:0] magnitude;
    reg  [31:0] sign;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$6$round$out_sum out_sum(
        .d(out_sum$d),
        .q(out_sum$q),
        .clock(out_sum$clock)
    );
    // Update code
    always @(*) begin
        out_sum$clock = clock;
        out_sum$d = out_sum$q;
        kept = fraction[(32'h3)+:(23)];
        field = ((exponent) & 31'h7fffffff) << 32'h17;
        truncated = ((kept) & 31'h7fffffff);
        if (fraction[32'h1a]) begin
            truncated = ((kept) & 31'h7fffffff) | field;
        end
        up = fraction[32'h2] & (fraction[32'h3] | fraction[32'h1] | fraction[32'h0]);
        rounded = truncated + ((up) & 31'h7fffffff);
        largest = (exponent == 32'hfe) & &kept;
        overflows = fraction[32'h1a] & (&exponent | (largest & up));
        magnitude = ((rounded) & 32'hffffffff);
        if (overflows | kind[(64'h3)+:(1)]) begin
            magnitude = 32'h7f800000;
        end
        sign = ((kind[(64'h0)+:(1)]) & 32'hffffffff) << 32'h1f;
        out_sum$d = magnitude | sign;
        if (kind[(64'h2)+:(1)]) begin
            out_sum$d = 32'h7fc00000;
        end
        sum = out_sum$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$round
module iswitch_accel$datapath$accumulator$adders$lane$6$round$out_sum(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$round$out_sum
module iswitch_accel$datapath$accumulator$adders$lane$6$unpack(clock,a,b,kind,exponent,distance,larger,smaller);
    // Module arguments
    input wire  clock;
    input wire  [31:0] a;
    input wire  [31:0] b;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [7:0] distance;
    output reg  [23:0] larger;
    output reg  [23:0] smaller;
    // Stub signals
    reg  a_is_large$d;
    wire  a_is_large$q;
    reg  a_is_large$clock;
    reg  a_is_small$d;
    wire  a_is_small$q;
    reg  a_is_small$clock;
    reg  [3:0] held_kind$d;
    wire  [3:0] held_kind$q;
    reg  held_kind$clock;
    reg  sign_a$d;
    wire  sign_a$q;
    reg  sign_a$clock;
    reg  sign_b$d;
    wire  sign_b$q;
    reg  sign_b$clock;
    reg  [7:0] shift_a$d;
    wire  [7:0] shift_a$q;
    reg  shift_a$clock;
    reg  [7:0] shift_b$d;
    wire  [7:0] shift_b$q;
    reg  shift_b$clock;
    reg  [23:0] significand_a$d;
    wire  [23:0] significand_a$q;
    reg  significand_a$clock;
    reg  [23:0] significand_b$d;
    wire  [23:0] significand_b$q;
    reg  significand_b$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [7:0] out_distance$d;
    wire  [7:0] out_distance$q;
    reg  out_distance$clock;
    reg  [23:0] out_large$d;
    wire  [23:0] out_large$q;
    reg  out_large$clock;
    reg  [23:0] out_small$d;
    wire  [23:0] out_small$q;
    reg  out_small$clock;
    // Local signals
    reg  [30:0] magnitude_a;
    reg  [30:0] magnitude_b;
    reg  at_least;
    reg  [7:0] exponent_a;
    reg  [7:0] exponent_b;
    reg  [22:0] fraction_a;
    reg  [22:0] fraction_b;
    reg  a_special;
    reg  b_special;
    reg  unlike;
    reg  [7:0] shift_x;
    reg  [7:0] shift_y;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$6$unpack$a_is_large a_is_large(
        .d(a_is_large$d),
        .q(a_is_large$q),
        .clock(a_is_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$unpack$a_is_small a_is_small(
        .d(a_is_small$d),
        .q(a_is_small$q),
        .clock(a_is_small$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$unpack$held_kind held_kind(
        .d(held_kind$d),
        .q(held_kind$q),
        .clock(held_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$unpack$sign_a sign_a(
        .d(sign_a$d),
        .q(sign_a$q),
        .clock(sign_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$unpack$sign_b sign_b(
        .d(sign_b$d),
        .q(sign_b$q),
        .clock(sign_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$unpack$shift_a shift_a(
        .d(shift_a$d),
        .q(shift_a$q),
        .clock(shift_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$unpack$shift_b shift_b(
        .d(shift_b$d),
        .q(shift_b$q),
        .clock(shift_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$unpack$significand_a significand_a(
        .d(significand_a$d),
        .q(significand_a$q),
        .clock(significand_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$unpack$significand_b significand_b(
        .d(significand_b$d),
        .q(significand_b$q),
        .clock(significand_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$unpack$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$unpack$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$unpack$out_distance out_distance(
        .d(out_distance$d),
        .q(out_distance$q),
        .clock(out_distance$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$unpack$out_large out_large(
        .d(out_large$d),
        .q(out_large$q),
        .clock(out_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$6$unpack$out_small out_small(
        .d(out_small$d),
        .q(out_small$q),
        .clock(out_small$clock)
    );
    // Update code
    always @(*) begin
        a_is_large$clock = clock;
        a_is_small$clock = clock;
        held_kind$clock = clock;
        sign_a$clock = clock;
        sign_b$clock = clock;
        shift_a$clock = clock;
        shift_b$clock = clock;
        a_is_large$d = a_is_large$q;
        a_is_small$d = a_is_small$q;
        held_kind$d = held_kind$q;
        sign_a$d = sign_a$q;
        sign_b$d = sign_b$q;
        shift_a$d = shift_a$q;
        shift_b$d = shift_b$q;
        significand_a$clock = clock;
        significand_b$clock = clock;
        significand_a$d = significand_a$q;
        significand_b$d = significand_b$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_distance$clock = clock;
        out_large$clock = clock;
        out_small$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_distance$d = out_distance$q;
        out_large$d = out_large$q;
        out_small$d = out_small$q;
        magnitude_a = a[(32'h0)+:(31)];
        magnitude_b = b[(32'h0)+:(31)];
        at_least = magnitude_a >= magnitude_b;
        a_is_large$d = at_least;
        a_is_small$d = ~at_least;
        exponent_a = a[(32'h17)+:(8)];
        exponent_b = b[(32'h17)+:(8)];
        fraction_a = a[(32'h0)+:(23)];
        fraction_b = b[(32'h0)+:(23)];
        shift_a$d = 32'h1;
        shift_b$d = 32'h1;
        significand_a$d = ((fraction_a) & 24'hffffff);
        significand_b$d = ((fraction_b) & 24'hffffff);
        if (|exponent_a) begin
            shift_a$d = exponent_a;
            significand_a$d = ((fraction_a) & 24'hffffff) | 32'h800000;
        end
        if (|exponent_b) begin
            shift_b$d = exponent_b;
            significand_b$d = ((fraction_b) & 24'hffffff) | 32'h800000;
        end
        sign_a$d = a[32'h1f];
        sign_b$d = b[32'h1f];
        unlike = a[32'h1f] ^ b[32'h1f];
        a_special = &exponent_a;
        b_special = &exponent_b;
        held_kind$d[(64'h0)+:(1)] = 1'b0;
        held_kind$d[(64'h1)+:(1)] = unlike;
        held_kind$d[(64'h2)+:(1)] = (a_special & |fraction_a) | (b_special & |fraction_b) | (a_special & b_special & unlike);
        held_kind$d[(64'h3)+:(1)] = a_special | b_special;
        out_kind$d = held_kind$q;
        out_kind$d[(64'h0)+:(1)] = sign_b$q;
        shift_x = shift_b$q;
        out_large$d = significand_b$q;
        if (a_is_large$q) begin
            out_kind$d[(64'h0)+:(1)] = sign_a$q;
            shift_x = shift_a$q;
            out_large$d = significand_a$q;
        end
        shift_y = shift_b$q;
        out_small$d = significand_b$q;
        if (a_is_small$q) begin
            shift_y = shift_a$q;
            out_small$d = significand_a$q;
        end
        out_exponent$d = shift_x;
        out_distance$d = shift_x - shift_y;
        kind = out_kind$q;
        exponent = out_exponent$q;
        distance = out_distance$q;
        larger = out_large$q;
        smaller = out_small$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$unpack
module iswitch_accel$datapath$accumulator$adders$lane$6$unpack$a_is_large(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$unpack$a_is_large
module iswitch_accel$datapath$accumulator$adders$lane$6$unpack$a_is_small(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$unpack$a_is_small
module iswitch_accel$datapath$accumulator$adders$lane$6$unpack$held_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$unpack$held_kind
module iswitch_accel$datapath$accumulator$adders$lane$6$unpack$out_distance(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$unpack$out_distance
module iswitch_accel$datapath$accumulator$adders$lane$6$unpack$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$unpack$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$6$unpack$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$unpack$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$6$unpack$out_large(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$unpack$out_large
module iswitch_accel$datapath$accumulator$adders$lane$6$unpack$out_small(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$unpack$out_small
module iswitch_accel$datapath$accumulator$adders$lane$6$unpack$shift_a(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$unpack$shift_a
module iswitch_accel$datapath$accumulator$adders$lane$6$unpack$shift_b(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$unpack$shift_b
module iswitch_accel$datapath$accumulator$adders$lane$6$unpack$sign_a(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$unpack$sign_a
module iswitch_accel$datapath$accumulator$adders$lane$6$unpack$sign_b(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$unpack$sign_b
module iswitch_accel$datapath$accumulator$adders$lane$6$unpack$significand_a(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$unpack$significand_a
module iswitch_accel$datapath$accumulator$adders$lane$6$unpack$significand_b(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$6$unpack$significand_b
module iswitch_accel$datapath$accumulator$adders$lane$7(clock,a,b,sum);
    // Module arguments
    input wire  clock;
    input wire  [31:0] a;
    input wire  [31:0] b;
    output reg  [31:0] sum;
    // Stub signals
    reg  unpack$clock;
    reg  [31:0] unpack$a;
    reg  [31:0] unpack$b;
    wire  [3:0] unpack$kind;
    wire  [7:0] unpack$exponent;
    wire  [7:0] unpack$distance;
    wire  [23:0] unpack$larger;
    wire  [23:0] unpack$smaller;
    reg  align$clock;
    reg  [3:0] align$kind_in;
    reg  [7:0] align$exponent_in;
    reg  [7:0] align$distance;
    reg  [23:0] align$larger;
    reg  [23:0] align$smaller;
    wire  [3:0] align$kind;
    wire  [7:0] align$exponent;
    wire  [27:0] align$total;
    reg  normalise$clock;
    reg  [3:0] normalise$kind_in;
    reg  [7:0] normalise$exponent_in;
    reg  [27:0] normalise$total;
    wire  [3:0] normalise$kind;
    wire  [7:0] normalise$exponent;
    wire  [26:0] normalise$fraction;
    reg  round$clock;
    reg  [3:0] round$kind;
    reg  [7:0] round$exponent;
    reg  [26:0] round$fraction;
    wire  [31:0] round$sum;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$7$unpack unpack(
        .clock(unpack$clock),
        .a(unpack$a),
        .b(unpack$b),
        .kind(unpack$kind),
        .exponent(unpack$exponent),
        .distance(unpack$distance),
        .larger(unpack$larger),
        .smaller(unpack$smaller)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$align align(
        .clock(align$clock),
        .kind_in(align$kind_in),
        .exponent_in(align$exponent_in),
        .distance(align$distance),
        .larger(align$larger),
        .smaller(align$smaller),
        .kind(align$kind),
        .exponent(align$exponent),
        .total(align$total)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$normalise normalise(
        .clock(normalise$clock),
        .kind_in(normalise$kind_in),
        .exponent_in(normalise$exponent_in),
        .total(normalise$total),
        .kind(normalise$kind),
        .exponent(normalise$exponent),
        .fraction(normalise$fraction)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$round round(
        .clock(round$clock),
        .kind(round$kind),
        .exponent(round$exponent),
        .fraction(round$fraction),
        .sum(round$sum)
    );
    // Update code
    always @(*) begin
        unpack$clock = clock;
        align$clock = clock;
        normalise$clock = clock;
        round$clock = clock;
        unpack$a = a;
        unpack$b = b;
        align$kind_in = unpack$kind;
        align$exponent_in = unpack$exponent;
        align$distance = unpack$distance;
        align$larger = unpack$larger;
        align$smaller = unpack$smaller;
        normalise$kind_in = align$kind;
        normalise$exponent_in = align$exponent;
        normalise$total = align$total;
        round$kind = normalise$kind;
        round$exponent = normalise$exponent;
        round$fraction = normalise$fraction;
        sum = round$sum;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7
module iswitch_accel$datapath$accumulator$adders$lane$7$align(clock,kind_in,exponent_in,distance,larger,smaller,kind,exponent,total);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind_in;
    input wire  [7:0] exponent_in;
    input wire  [7:0] distance;
    input wire  [23:0] larger;
    input wire  [23:0] smaller;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [27:0] total;
    // Stub signals
    reg  [3:0] aligned_kind$d;
    wire  [3:0] aligned_kind$q;
    reg  aligned_kind$clock;
    reg  [7:0] aligned_exponent$d;
    wire  [7:0] aligned_exponent$q;
    reg  aligned_exponent$clock;
    reg  [23:0] aligned_large$d;
    wire  [23:0] aligned_large$q;
    reg  aligned_large$clock;
    reg  [26:0] aligned_small$d;
    wire  [26:0] aligned_small$q;
    reg  aligned_small$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [27:0] out_total$d;
    wire  [27:0] out_total$q;
    reg  out_total$clock;
    // Local signals
    reg  [26:0] by_0;
    reg  [26:0] by_1;
    reg  [26:0] by_3;
    reg  [26:0] by_7;
    reg  [26:0] by_15;
    reg  [26:0] by_31;
    reg  lost_1;
    reg  lost_3;
    reg  lost_7;
    reg  lost_15;
    reg  lost_31;
    reg  all_lost;
    reg  [28:0] augend;
    reg  [28:0] addend;
    reg  [28:0] complement;
    reg  [28:0] sum;
    reg  [28:0] shifted;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$7$align$aligned_kind aligned_kind(
        .d(aligned_kind$d),
        .q(aligned_kind$q),
        .clock(aligned_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$align$aligned_exponent aligned_exponent(
        .d(aligned_exponent$d),
        .q(aligned_exponent$q),
        .clock(aligned_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$align$aligned_large aligned_large(
        .d(aligned_large$d),
        .q(aligned_large$q),
        .clock(aligned_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$align$aligned_small aligned_small(
        .d(aligned_small$d),
        .q(aligned_small$q),
        .clock(aligned_small$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$align$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$align$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$align$out_total out_total(
        .d(out_total$d),
        .q(out_total$q),
        .clock(out_total$clock)
    );
    // Update code
    always @(*) begin
        aligned_kind$clock = clock;
        aligned_exponent$clock = clock;
        aligned_large$clock = clock;
        aligned_small$clock = clock;
        aligned_kind$d = aligned_kind$q;
        aligned_exponent$d = aligned_exponent$q;
        aligned_large$d = aligned_large$q;
        aligned_small$d = aligned_small$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_total$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_total$d = out_total$q;
        by_0 = ((smaller) & 27'h7ffffff) << 32'h3;
        by_1 = by_0;
        lost_1 = 1'b0;
        if (distance[32'h0]) begin
            by_1 = by_0 >> 32'h1;
            lost_1 = by_0[32'h0];
        end
        by_3 = by_1;
        lost_3 = lost_1;
        if (distance[32'h1]) begin
            by_3 = by_1 >> 32'h2;
            lost_3 = lost_1 | |by_1[(32'h0)+:(2)];
        end
        by_7 = by_3;
        lost_7 = lost_3;
        if (distance[32'h2]) begin
            by_7 = by_3 >> 32'h4;
            lost_7 = lost_3 | |by_3[(32'h0)+:(4)];
        end
        by_15 = by_7;
        lost_15 = lost_7;
        if (distance[32'h3]) begin
            by_15 = by_7 >> 32'h8;
            lost_15 = lost_7 | |by_7[(32'h0)+:(8)];
        end
        by_31 = by_15;
        lost_31 = lost_15;
        if (distance[32'h4]) begin
            by_31 = by_15 >> 32'h10;
            lost_31 = lost_15 | |by_15[(32'h0)+:(16)];
        end
        aligned_small$d = by_31 | ((lost_31) & 27'h7ffffff);
        all_lost = |distance[(32'h5)+:(3)];
        if (all_lost) begin
            aligned_small$d = ((|smaller) & 27'h7ffffff);
        end
        aligned_kind$d = kind_in;
        aligned_exponent$d = exponent_in;
        aligned_large$d = larger;
        shifted = ((aligned_large$q) & 29'h1fffffff) << 32'h4;
        augend = shifted | 32'h1;
        addend = ((aligned_small$q) & 29'h1fffffff) << 32'h1;
        complement = addend;
        if (aligned_kind$q[(64'h1)+:(1)]) begin
            complement = ~addend;
        end
        sum = augend + complement;
        out_total$d = sum[(32'h1)+:(28)];
        out_kind$d = aligned_kind$q;
        out_exponent$d = aligned_exponent$q;
        kind = out_kind$q;
        exponent = out_exponent$q;
        total = out_total$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$align
module iswitch_accel$datapath$accumulator$adders$lane$7$align$aligned_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$align$aligned_exponent
module iswitch_accel$datapath$accumulator$adders$lane$7$align$aligned_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$align$aligned_kind
module iswitch_accel$datapath$accumulator$adders$lane$7$align$aligned_large(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$align$aligned_large
module iswitch_accel$datapath$accumulator$adders$lane$7$align$aligned_small(d,q,clock);
    // Module arguments
    input wire  [26:0] d;
    output reg  [26:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 27'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$align$aligned_small
module iswitch_accel$datapath$accumulator$adders$lane$7$align$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$align$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$7$align$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$align$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$7$align$out_total(d,q,clock);
    // Module arguments
    input wire  [27:0] d;
    output reg  [27:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 28'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$align$out_total
module iswitch_accel$datapath$accumulator$adders$lane$7$normalise(clock,kind_in,exponent_in,total,kind,exponent,fraction);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind_in;
    input wire  [7:0] exponent_in;
    input wire  [27:0] total;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [26:0] fraction;
    // Stub signals
    reg  [3:0] counted_kind$d;
    wire  [3:0] counted_kind$q;
    reg  counted_kind$clock;
    reg  [7:0] counted_exponent$d;
    wire  [7:0] counted_exponent$q;
    reg  counted_exponent$clock;
    reg  [27:0] counted_total$d;
    wire  [27:0] counted_total$q;
    reg  counted_total$clock;
    reg  [4:0] shift$d;
    wire  [4:0] shift$q;
    reg  shift$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [26:0] out_fraction$d;
    wire  [26:0] out_fraction$q;
    reg  out_fraction$clock;
    // Local signals
    reg  [27:0] padded;
    reg  [3:0] group$0;
    reg  [3:0] group$1;
    reg  [3:0] group$2;
    reg  [3:0] group$3;
    reg  [3:0] group$4;
    reg  [3:0] group$5;
    reg  [3:0] group$6;
    reg  [4:0] within$0;
    reg  [4:0] within$1;
    reg  [4:0] within$2;
    reg  [4:0] within$3;
    reg  [4:0] within$4;
    reg  [4:0] within$5;
    reg  [4:0] within$6;
    reg  [4:0] groups_before;
    reg  [4:0] zeros_within;
    reg  [4:0] zeros;
    reg  [7:0] wide_zeros;
    reg  [7:0] most;
    reg  [26:0] by_0;
    reg  [26:0] by_1;
    reg  [26:0] by_3;
    reg  [26:0] by_7;
    reg  [26:0] by_15;
    reg  [26:0] by_31;
    reg  [7:0] wide_shift;
    reg  lowest;
    reg  [26:0] carried;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$7$normalise$counted_kind counted_kind(
        .d(counted_kind$d),
        .q(counted_kind$q),
        .clock(counted_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$normalise$counted_exponent counted_exponent(
        .d(counted_exponent$d),
        .q(counted_exponent$q),
        .clock(counted_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$normalise$counted_total counted_total(
        .d(counted_total$d),
        .q(counted_total$q),
        .clock(counted_total$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$normalise$shift shift(
        .d(shift$d),
        .q(shift$q),
        .clock(shift$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$normalise$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$normalise$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$normalise$out_fraction out_fraction(
        .d(out_fraction$d),
        .q(out_fraction$q),
        .clock(out_fraction$clock)
    );
    // Update code
    always @(*) begin
        counted_kind$clock = clock;
        counted_exponent$clock = clock;
        counted_total$clock = clock;
        shift$clock = clock;
        counted_kind$d = counted_kind$q;
        counted_exponent$d = counted_exponent$q;
        counted_total$d = counted_total$q;
        shift$d = shift$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_fraction$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_fraction$d = out_fraction$q;
        padded = total << 32'h1;
        groups_before = 32'h1c;
        zeros_within = 32'h3;
        group$0 = padded[(32'h4 * 0)+:(4)];
        within$0 = 32'h3;
        if (group$0[32'h1]) begin
            within$0 = 32'h2;
        end
        if (group$0[32'h2]) begin
            within$0 = 32'h1;
        end
        if (group$0[32'h3]) begin
            within$0 = 32'h0;
        end
        if (|group$0) begin
            groups_before = (32'h4 * (32'h6 - 0));
            zeros_within = within$0;
        end
        group$1 = padded[(32'h4 * 1)+:(4)];
        within$1 = 32'h3;
        if (group$1[32'h1]) begin
            within$1 = 32'h2;
        end
        if (group$1[32'h2]) begin
            within$1 = 32'h1;
        end
        if (group$1[32'h3]) begin
            within$1 = 32'h0;
        end
        if (|group$1) begin
            groups_before = (32'h4 * (32'h6 - 1));
            zeros_within = within$1;
        end
        group$2 = padded[(32'h4 * 2)+:(4)];
        within$2 = 32'h3;
        if (group$2[32'h1]) begin
            within$2 = 32'h2;
        end
        if (group$2[32'h2]) begin
            within$2 = 32'h1;
        end
        if (group$2[32'h3]) begin
            within$2 = 32'h0;
        end
        if (|group$2) begin
            groups_before = (32'h4 * (32'h6 - 2));
            zeros_within = within$2;
        end
        group$3 = padded[(32'h4 * 3)+:(4)];
        within$3 = 32'h3;
        if (group$3[32'h1]) begin
            within$3 = 32'h2;
        end
        if (group$3[32'h2]) begin
            within$3 = 32'h1;
        end
        if (group$3[32'h3]) begin
            within$3 = 32'h0;
        end
        if (|group$3) begin
            groups_before = (32'h4 * (32'h6 - 3));
            zeros_within = within$3;
        end
        group$4 = padded[(32'h4 * 4)+:(4)];
        within$4 = 32'h3;
        if (group$4[32'h1]) begin
            within$4 = 32'h2;
        end
        if (group$4[32'h2]) begin
            within$4 = 32'h1;
        end
        if (group$4[32'h3]) begin
            within$4 = 32'h0;
        end
        if (|group$4) begin
            groups_before = (32'h4 * (32'h6 - 4));
            zeros_within = within$4;
        end
        group$5 = padded[(32'h4 * 5)+:(4)];
        within$5 = 32'h3;
        if (group$5[32'h1]) begin
            within$5 = 32'h2;
        end
        if (group$5[32'h2]) begin
            within$5 = 32'h1;
        end
        if (group$5[32'h3]) begin
            within$5 = 32'h0;
        end
        if (|group$5) begin
            groups_before = (32'h4 * (32'h6 - 5));
            zeros_within = within$5;
        end
        group$6 = padded[(32'h4 * 6)+:(4)];
        within$6 = 32'h3;
        if (group$6[32'h1]) begin
            within$6 = 32'h2;
        end
        if (group$6[32'h2]) begin
            within$6 = 32'h1;
        end
        if (group$6[32'h3]) begin
            within$6 = 32'h0;
        end
        if (|group$6) begin
            groups_before = (32'h4 * (32'h6 - 6));
            zeros_within = within$6;
        end
        zeros = groups_before | zeros_within;
        most = exponent_in - 32'h1;
        wide_zeros = ((zeros) & 8'hff);
        shift$d = zeros;
        if (wide_zeros > most) begin
            shift$d = most[(32'h0)+:(5)];
        end
        counted_kind$d = kind_in;
        counted_exponent$d = exponent_in;
        counted_total$d = total;
        by_0 = counted_total$q[(32'h0)+:(27)];
        by_1 = by_0;
        if (shift$q[32'h0]) begin
            by_1 = by_0 << 32'h1;
        end
        by_3 = by_1;
        if (shift$q[32'h1]) begin
            by_3 = by_1 << 32'h2;
        end
        by_7 = by_3;
        if (shift$q[32'h2]) begin
            by_7 = by_3 << 32'h4;
        end
        by_15 = by_7;
        if (shift$q[32'h3]) begin
            by_15 = by_7 << 32'h8;
        end
        by_31 = by_15;
        if (shift$q[32'h4]) begin
            by_31 = by_15 << 32'h10;
        end
        wide_shift = ((shift$q) & 8'hff);
        lowest = counted_total$q[(32'h0)+:(1)];
        carried = counted_total$q[(32'h1)+:(27)];
        out_fraction$d = by_31;
        out_exponent$d = counted_exponent$q - wide_shift;
        if (counted_total$q[32'h1b]) begin
            out_fraction$d = carried | ((lowest) & 27'h7ffffff);
            out_exponent$d = counted_exponent$q + 32'h1;
        end
        out_kind$d = counted_kind$q;
        if (counted_kind$q[(64'h1)+:(1)] & ~|counted_total$q) begin
            out_kind$d[(64'h0)+:(1)] = 1'b0;
        end
        kind = out_kind$q;
        exponent = out_exponent$q;
        fraction = out_fraction$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$normalise
module iswitch_accel$datapath$accumulator$adders$lane$7$normalise$counted_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$normalise$counted_exponent
module iswitch_accel$datapath$accumulator$adders$lane$7$normalise$counted_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$normalise$counted_kind
module iswitch_accel$datapath$accumulator$adders$lane$7$normalise$counted_total(d,q,clock);
    // Module arguments
    input wire  [27:0] d;
    output reg  [27:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 28'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$normalise$counted_total
module iswitch_accel$datapath$accumulator$adders$lane$7$normalise$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$normalise$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$7$normalise$out_fraction(d,q,clock);
    // Module arguments
    input wire  [26:0] d;
    output reg  [26:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 27'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$normalise$out_fraction
module iswitch_accel$datapath$accumulator$adders$lane$7$normalise$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$normalise$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$7$normalise$shift(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$normalise$shift
module iswitch_accel$datapath$accumulator$adders$lane$7$round(clock,kind,exponent,fraction,sum);
    // Module arguments
    input wire  clock;
    input wire  [3:0] kind;
    input wire  [7:0] exponent;
    input wire  [26:0] fraction;
    output reg  [31:0] sum;
    // Stub signals
    reg  [31:0] out_sum$d;
    wire  [31:0] out_sum$q;
    reg  out_sum$clock;
    // Local signals
    reg  [22:0] kept;
    reg  [30:0] field;
    reg  [30:0] truncated;
    reg  up;
    reg  [30:0] rounded;
    reg  largest;
    reg  overflows;
    reg  [31:0] magnitude;
    reg  [31:0] sign;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$7$round$out_sum out_sum(
        .d(out_sum$d),
        .q(out_sum$q),
        .clock(out_sum$clock)
    );
    // Update code
    always @(*) begin
        out_sum$clock = clock;
        out_sum$d = out_sum$q;
        kept = fraction[(32'h3)+:(23)];
        field = ((exponent) & 31'h7fffffff) << 32'h17;
        truncated = ((kept) & 31'h7fffffff);
        if (fraction[32'h1a]) begin
            truncated = ((kept) & 31'h7fffffff) | field;
        end
        up = fraction[32'h2] & (fraction[32'h3] | fraction[32'h1] | fraction[32'h0]);
        rounded = truncated + ((up) & 31'h7fffffff);
        largest = (exponent == 32'hfe) & &kept;
        overflows = fraction[32'h1a] & (&exponent | (largest & up));
        magnitude = ((rounded) & 32'hffffffff);
        if (overflows | kind[(64'h3)+:(1)]) begin
            magnitude = 32'h7f800000;
        end
        sign = ((kind[(64'h0)+:(1)]) & 32'hffffffff) << 32'h1f;
        out_sum$d = magnitude | sign;
        if (kind[(64'h2)+:(1)]) begin
            out_sum$d = 32'h7fc00000;
        end
        sum = out_sum$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$round
module iswitch_accel$datapath$accumulator$adders$lane$7$round$out_sum(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$round$out_sum
module iswitch_accel$datapath$accumulator$adders$lane$7$unpack(clock,a,b,kind,exponent,distance,larger,smaller);
    // Module arguments
    input wire  clock;
    input wire  [31:0] a;
    input wire  [31:0] b;
    output reg  [3:0] kind;
    output reg  [7:0] exponent;
    output reg  [7:0] distance;
    output reg  [23:0] larger;
    output reg  [23:0] smaller;
    // Stub signals
    reg  a_is_large$d;
    wire  a_is_large$q;
    reg  a_is_large$clock;
    reg  a_is_small$d;
    wire  a_is_small$q;
    reg  a_is_small$clock;
    reg  [3:0] held_kind$d;
    wire  [3:0] held_kind$q;
    reg  held_kind$clock;
    reg  sign_a$d;
    wire  sign_a$q;
    reg  sign_a$clock;
    reg  sign_b$d;
    wire  sign_b$q;
    reg  sign_b$clock;
    reg  [7:0] shift_a$d;
    wire  [7:0] shift_a$q;
    reg  shift_a$clock;
    reg  [7:0] shift_b$d;
    wire  [7:0] shift_b$q;
    reg  shift_b$clock;
    reg  [23:0] significand_a$d;
    wire  [23:0] significand_a$q;
    reg  significand_a$clock;
    reg  [23:0] significand_b$d;
    wire  [23:0] significand_b$q;
    reg  significand_b$clock;
    reg  [3:0] out_kind$d;
    wire  [3:0] out_kind$q;
    reg  out_kind$clock;
    reg  [7:0] out_exponent$d;
    wire  [7:0] out_exponent$q;
    reg  out_exponent$clock;
    reg  [7:0] out_distance$d;
    wire  [7:0] out_distance$q;
    reg  out_distance$clock;
    reg  [23:0] out_large$d;
    wire  [23:0] out_large$q;
    reg  out_large$clock;
    reg  [23:0] out_small$d;
    wire  [23:0] out_small$q;
    reg  out_small$clock;
    // Local signals
    reg  [30:0] magnitude_a;
    reg  [30:0] magnitude_b;
    reg  at_least;
    reg  [7:0] exponent_a;
    reg  [7:0] exponent_b;
    reg  [22:0] fraction_a;
    reg  [22:0] fraction_b;
    reg  a_special;
    reg  b_special;
    reg  unlike;
    reg  [7:0] shift_x;
    reg  [7:0] shift_y;
    // Sub module instances
    iswitch_accel$datapath$accumulator$adders$lane$7$unpack$a_is_large a_is_large(
        .d(a_is_large$d),
        .q(a_is_large$q),
        .clock(a_is_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$unpack$a_is_small a_is_small(
        .d(a_is_small$d),
        .q(a_is_small$q),
        .clock(a_is_small$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$unpack$held_kind held_kind(
        .d(held_kind$d),
        .q(held_kind$q),
        .clock(held_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$unpack$sign_a sign_a(
        .d(sign_a$d),
        .q(sign_a$q),
        .clock(sign_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$unpack$sign_b sign_b(
        .d(sign_b$d),
        .q(sign_b$q),
        .clock(sign_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$unpack$shift_a shift_a(
        .d(shift_a$d),
        .q(shift_a$q),
        .clock(shift_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$unpack$shift_b shift_b(
        .d(shift_b$d),
        .q(shift_b$q),
        .clock(shift_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$unpack$significand_a significand_a(
        .d(significand_a$d),
        .q(significand_a$q),
        .clock(significand_a$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$unpack$significand_b significand_b(
        .d(significand_b$d),
        .q(significand_b$q),
        .clock(significand_b$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$unpack$out_kind out_kind(
        .d(out_kind$d),
        .q(out_kind$q),
        .clock(out_kind$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$unpack$out_exponent out_exponent(
        .d(out_exponent$d),
        .q(out_exponent$q),
        .clock(out_exponent$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$unpack$out_distance out_distance(
        .d(out_distance$d),
        .q(out_distance$q),
        .clock(out_distance$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$unpack$out_large out_large(
        .d(out_large$d),
        .q(out_large$q),
        .clock(out_large$clock)
    );
    iswitch_accel$datapath$accumulator$adders$lane$7$unpack$out_small out_small(
        .d(out_small$d),
        .q(out_small$q),
        .clock(out_small$clock)
    );
    // Update code
    always @(*) begin
        a_is_large$clock = clock;
        a_is_small$clock = clock;
        held_kind$clock = clock;
        sign_a$clock = clock;
        sign_b$clock = clock;
        shift_a$clock = clock;
        shift_b$clock = clock;
        a_is_large$d = a_is_large$q;
        a_is_small$d = a_is_small$q;
        held_kind$d = held_kind$q;
        sign_a$d = sign_a$q;
        sign_b$d = sign_b$q;
        shift_a$d = shift_a$q;
        shift_b$d = shift_b$q;
        significand_a$clock = clock;
        significand_b$clock = clock;
        significand_a$d = significand_a$q;
        significand_b$d = significand_b$q;
        out_kind$clock = clock;
        out_exponent$clock = clock;
        out_distance$clock = clock;
        out_large$clock = clock;
        out_small$clock = clock;
        out_kind$d = out_kind$q;
        out_exponent$d = out_exponent$q;
        out_distance$d = out_distance$q;
        out_large$d = out_large$q;
        out_small$d = out_small$q;
        magnitude_a = a[(32'h0)+:(31)];
        magnitude_b = b[(32'h0)+:(31)];
        at_least = magnitude_a >= magnitude_b;
        a_is_large$d = at_least;
        a_is_small$d = ~at_least;
        exponent_a = a[(32'h17)+:(8)];
        exponent_b = b[(32'h17)+:(8)];
        fraction_a = a[(32'h0)+:(23)];
        fraction_b = b[(32'h0)+:(23)];
        shift_a$d = 32'h1;
        shift_b$d = 32'h1;
        significand_a$d = ((fraction_a) & 24'hffffff);
        significand_b$d = ((fraction_b) & 24'hffffff);
        if (|exponent_a) begin
            shift_a$d = exponent_a;
            significand_a$d = ((fraction_a) & 24'hffffff) | 32'h800000;
        end
        if (|exponent_b) begin
            shift_b$d = exponent_b;
            significand_b$d = ((fraction_b) & 24'hffffff) | 32'h800000;
        end
        sign_a$d = a[32'h1f];
        sign_b$d = b[32'h1f];
        unlike = a[32'h1f] ^ b[32'h1f];
        a_special = &exponent_a;
        b_special = &exponent_b;
        held_kind$d[(64'h0)+:(1)] = 1'b0;
        held_kind$d[(64'h1)+:(1)] = unlike;
        held_kind$d[(64'h2)+:(1)] = (a_special & |fraction_a) | (b_special & |fraction_b) | (a_special & b_special & unlike);
        held_kind$d[(64'h3)+:(1)] = a_special | b_special;
        out_kind$d = held_kind$q;
        out_kind$d[(64'h0)+:(1)] = sign_b$q;
        shift_x = shift_b$q;
        out_large$d = significand_b$q;
        if (a_is_large$q) begin
            out_kind$d[(64'h0)+:(1)] = sign_a$q;
            shift_x = shift_a$q;
            out_large$d = significand_a$q;
        end
        shift_y = shift_b$q;
        out_small$d = significand_b$q;
        if (a_is_small$q) begin
            shift_y = shift_a$q;
            out_small$d = significand_a$q;
        end
        out_exponent$d = shift_x;
        out_distance$d = shift_x - shift_y;
        kind = out_kind$q;
        exponent = out_exponent$q;
        distance = out_distance$q;
        larger = out_large$q;
        smaller = out_small$q;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$unpack
module iswitch_accel$datapath$accumulator$adders$lane$7$unpack$a_is_large(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$unpack$a_is_large
module iswitch_accel$datapath$accumulator$adders$lane$7$unpack$a_is_small(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$unpack$a_is_small
module iswitch_accel$datapath$accumulator$adders$lane$7$unpack$held_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$unpack$held_kind
module iswitch_accel$datapath$accumulator$adders$lane$7$unpack$out_distance(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$unpack$out_distance
module iswitch_accel$datapath$accumulator$adders$lane$7$unpack$out_exponent(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$unpack$out_exponent
module iswitch_accel$datapath$accumulator$adders$lane$7$unpack$out_kind(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$unpack$out_kind
module iswitch_accel$datapath$accumulator$adders$lane$7$unpack$out_large(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$unpack$out_large
module iswitch_accel$datapath$accumulator$adders$lane$7$unpack$out_small(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$unpack$out_small
module iswitch_accel$datapath$accumulator$adders$lane$7$unpack$shift_a(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$unpack$shift_a
module iswitch_accel$datapath$accumulator$adders$lane$7$unpack$shift_b(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$unpack$shift_b
module iswitch_accel$datapath$accumulator$adders$lane$7$unpack$sign_a(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$unpack$sign_a
module iswitch_accel$datapath$accumulator$adders$lane$7$unpack$sign_b(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$unpack$sign_b
module iswitch_accel$datapath$accumulator$adders$lane$7$unpack$significand_a(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$unpack$significand_a
module iswitch_accel$datapath$accumulator$adders$lane$7$unpack$significand_b(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$adders$lane$7$unpack$significand_b
module iswitch_accel$datapath$accumulator$buffer(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [14:0] write_address;
    input wire  [255:0] write_data;
    input wire  write_enable;
    input wire  [14:0] read_address;
    output reg  [255:0] read_data;
    // Update code (custom)
    (* ram_style = "block" *) reg [255:0] words[11775:0];
    integer i;
    initial begin
       for (i = 0; i <= 11775; i = i + 1) words[i] = 0;
       read_data = 0;
    end
    always @(posedge clock) begin
       read_data <= words[read_address];
       if (write_enable) words[write_address] <= write_data;
    end
endmodule // iswitch_accel$datapath$accumulator$buffer
module iswitch_accel$datapath$accumulator$delayed(d,q,clock);
    // Module arguments
    input wire  [255:0] d;
    output reg  [255:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 256'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$delayed
module iswitch_accel$datapath$accumulator$first_zero(lanes,zero,out);
    // Module arguments
    input wire  [255:0] lanes;
    input wire  zero;
    output reg  [255:0] out;
    // Update code
    always @(*) begin
        out = lanes;
        if (zero) begin
            out[(64'h0)+:(32)] = 32'h0;
            out[(64'h20)+:(32)] = 32'h0;
            out[(64'h40)+:(32)] = 32'h0;
            out[(64'h60)+:(32)] = 32'h0;
            out[(64'h80)+:(32)] = 32'h0;
            out[(64'ha0)+:(32)] = 32'h0;
            out[(64'hc0)+:(32)] = 32'h0;
            out[(64'he0)+:(32)] = 32'h0;
        end
    end
endmodule // iswitch_accel$datapath$accumulator$first_zero
module iswitch_accel$datapath$accumulator$issued(d,q,clock);
    // Module arguments
    input wire  [255:0] d;
    output reg  [255:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 256'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$issued
module iswitch_accel$datapath$accumulator$read(d,q,clock);
    // Module arguments
    input wire  [255:0] d;
    output reg  [255:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 256'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$read
module iswitch_accel$datapath$accumulator$scoreboard(clock,reset,valid,address,flags,load,frees,credit,read_address,first,write,write_address,last,hazard);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  valid;
    input wire  [14:0] address;
    input wire  [1:0] flags;
    output reg  load;
    output reg  frees;
    input wire  credit;
    output reg  [14:0] read_address;
    output reg  first;
    output reg  write;
    output reg  [14:0] write_address;
    output reg  last;
    output reg  hazard;
    // Stub signals
    reg  waiting$d;
    wire  waiting$q;
    reg  waiting$clock;
    reg  idle$d;
    wire  idle$q;
    reg  idle$clock;
    reg  [14:0] waiting_address$d;
    wire  [14:0] waiting_address$q;
    reg  waiting_address$clock;
    reg  [1:0] waiting_flags$d;
    wire  [1:0] waiting_flags$q;
    reg  waiting_flags$clock;
    reg  same$0$d;
    wire  same$0$q;
    reg  same$0$clock;
    reg  same$1$d;
    wire  same$1$q;
    reg  same$1$clock;
    reg  same$2$d;
    wire  same$2$q;
    reg  same$2$clock;
    reg  same$3$d;
    wire  same$3$q;
    reg  same$3$clock;
    reg  same$4$d;
    wire  same$4$q;
    reg  same$4$clock;
    reg  same$5$d;
    wire  same$5$q;
    reg  same$5$clock;
    reg  same$6$d;
    wire  same$6$q;
    reg  same$6$clock;
    reg  same$7$d;
    wire  same$7$q;
    reg  same$7$clock;
    reg  same$8$d;
    wire  same$8$q;
    reg  same$8$clock;
    reg  flying$0$d;
    wire  flying$0$q;
    reg  flying$0$clock;
    reg  flying$1$d;
    wire  flying$1$q;
    reg  flying$1$clock;
    reg  flying$2$d;
    wire  flying$2$q;
    reg  flying$2$clock;
    reg  flying$3$d;
    wire  flying$3$q;
    reg  flying$3$clock;
    reg  flying$4$d;
    wire  flying$4$q;
    reg  flying$4$clock;
    reg  flying$5$d;
    wire  flying$5$q;
    reg  flying$5$clock;
    reg  flying$6$d;
    wire  flying$6$q;
    reg  flying$6$clock;
    reg  flying$7$d;
    wire  flying$7$q;
    reg  flying$7$clock;
    reg  flying$8$d;
    wire  flying$8$q;
    reg  flying$8$clock;
    reg  [14:0] addresses$0$d;
    wire  [14:0] addresses$0$q;
    reg  addresses$0$clock;
    reg  [14:0] addresses$1$d;
    wire  [14:0] addresses$1$q;
    reg  addresses$1$clock;
    reg  [14:0] addresses$2$d;
    wire  [14:0] addresses$2$q;
    reg  addresses$2$clock;
    reg  [14:0] addresses$3$d;
    wire  [14:0] addresses$3$q;
    reg  addresses$3$clock;
    reg  [14:0] addresses$4$d;
    wire  [14:0] addresses$4$q;
    reg  addresses$4$clock;
    reg  [14:0] addresses$5$d;
    wire  [14:0] addresses$5$q;
    reg  addresses$5$clock;
    reg  [14:0] addresses$6$d;
    wire  [14:0] addresses$6$q;
    reg  addresses$6$clock;
    reg  [14:0] addresses$7$d;
    wire  [14:0] addresses$7$q;
    reg  addresses$7$clock;
    reg  [14:0] addresses$8$d;
    wire  [14:0] addresses$8$q;
    reg  addresses$8$clock;
    reg  [1:0] kinds$0$d;
    wire  [1:0] kinds$0$q;
    reg  kinds$0$clock;
    reg  [1:0] kinds$1$d;
    wire  [1:0] kinds$1$q;
    reg  kinds$1$clock;
    reg  [1:0] kinds$2$d;
    wire  [1:0] kinds$2$q;
    reg  kinds$2$clock;
    reg  [1:0] kinds$3$d;
    wire  [1:0] kinds$3$q;
    reg  kinds$3$clock;
    reg  [1:0] kinds$4$d;
    wire  [1:0] kinds$4$q;
    reg  kinds$4$clock;
    reg  [1:0] kinds$5$d;
    wire  [1:0] kinds$5$q;
    reg  kinds$5$clock;
    reg  [1:0] kinds$6$d;
    wire  [1:0] kinds$6$q;
    reg  kinds$6$clock;
    reg  [1:0] kinds$7$d;
    wire  [1:0] kinds$7$q;
    reg  kinds$7$clock;
    reg  [1:0] kinds$8$d;
    wire  [1:0] kinds$8$q;
    reg  kinds$8$clock;
    reg  blocked$d;
    wire  blocked$q;
    reg  blocked$clock;
    // Local signals
    reg  hits$0;
    reg  hits$1;
    reg  hits$2;
    reg  hits$3;
    reg  hits$4;
    reg  hits$5;
    reg  hits$6;
    reg  hits$7;
    reg  hits$8;
    reg  any_hit;
    reg  any_same;
    reg  may_go;
    reg  go;
    reg  taken;
    // Sub module instances
    iswitch_accel$datapath$accumulator$scoreboard$waiting waiting(
        .d(waiting$d),
        .q(waiting$q),
        .clock(waiting$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$idle idle(
        .d(idle$d),
        .q(idle$q),
        .clock(idle$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$waiting_address waiting_address(
        .d(waiting_address$d),
        .q(waiting_address$q),
        .clock(waiting_address$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$waiting_flags waiting_flags(
        .d(waiting_flags$d),
        .q(waiting_flags$q),
        .clock(waiting_flags$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$same$0 same$0(
        .d(same$0$d),
        .q(same$0$q),
        .clock(same$0$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$same$1 same$1(
        .d(same$1$d),
        .q(same$1$q),
        .clock(same$1$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$same$2 same$2(
        .d(same$2$d),
        .q(same$2$q),
        .clock(same$2$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$same$3 same$3(
        .d(same$3$d),
        .q(same$3$q),
        .clock(same$3$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$same$4 same$4(
        .d(same$4$d),
        .q(same$4$q),
        .clock(same$4$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$same$5 same$5(
        .d(same$5$d),
        .q(same$5$q),
        .clock(same$5$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$same$6 same$6(
        .d(same$6$d),
        .q(same$6$q),
        .clock(same$6$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$same$7 same$7(
        .d(same$7$d),
        .q(same$7$q),
        .clock(same$7$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$same$8 same$8(
        .d(same$8$d),
        .q(same$8$q),
        .clock(same$8$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$flying$0 flying$0(
        .d(flying$0$d),
        .q(flying$0$q),
        .clock(flying$0$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$flying$1 flying$1(
        .d(flying$1$d),
        .q(flying$1$q),
        .clock(flying$1$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$flying$2 flying$2(
        .d(flying$2$d),
        .q(flying$2$q),
        .clock(flying$2$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$flying$3 flying$3(
        .d(flying$3$d),
        .q(flying$3$q),
        .clock(flying$3$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$flying$4 flying$4(
        .d(flying$4$d),
        .q(flying$4$q),
        .clock(flying$4$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$flying$5 flying$5(
        .d(flying$5$d),
        .q(flying$5$q),
        .clock(flying$5$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$flying$6 flying$6(
        .d(flying$6$d),
        .q(flying$6$q),
        .clock(flying$6$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$flying$7 flying$7(
        .d(flying$7$d),
        .q(flying$7$q),
        .clock(flying$7$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$flying$8 flying$8(
        .d(flying$8$d),
        .q(flying$8$q),
        .clock(flying$8$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$addresses$0 addresses$0(
        .d(addresses$0$d),
        .q(addresses$0$q),
        .clock(addresses$0$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$addresses$1 addresses$1(
        .d(addresses$1$d),
        .q(addresses$1$q),
        .clock(addresses$1$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$addresses$2 addresses$2(
        .d(addresses$2$d),
        .q(addresses$2$q),
        .clock(addresses$2$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$addresses$3 addresses$3(
        .d(addresses$3$d),
        .q(addresses$3$q),
        .clock(addresses$3$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$addresses$4 addresses$4(
        .d(addresses$4$d),
        .q(addresses$4$q),
        .clock(addresses$4$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$addresses$5 addresses$5(
        .d(addresses$5$d),
        .q(addresses$5$q),
        .clock(addresses$5$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$addresses$6 addresses$6(
        .d(addresses$6$d),
        .q(addresses$6$q),
        .clock(addresses$6$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$addresses$7 addresses$7(
        .d(addresses$7$d),
        .q(addresses$7$q),
        .clock(addresses$7$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$addresses$8 addresses$8(
        .d(addresses$8$d),
        .q(addresses$8$q),
        .clock(addresses$8$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$kinds$0 kinds$0(
        .d(kinds$0$d),
        .q(kinds$0$q),
        .clock(kinds$0$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$kinds$1 kinds$1(
        .d(kinds$1$d),
        .q(kinds$1$q),
        .clock(kinds$1$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$kinds$2 kinds$2(
        .d(kinds$2$d),
        .q(kinds$2$q),
        .clock(kinds$2$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$kinds$3 kinds$3(
        .d(kinds$3$d),
        .q(kinds$3$q),
        .clock(kinds$3$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$kinds$4 kinds$4(
        .d(kinds$4$d),
        .q(kinds$4$q),
        .clock(kinds$4$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$kinds$5 kinds$5(
        .d(kinds$5$d),
        .q(kinds$5$q),
        .clock(kinds$5$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$kinds$6 kinds$6(
        .d(kinds$6$d),
        .q(kinds$6$q),
        .clock(kinds$6$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$kinds$7 kinds$7(
        .d(kinds$7$d),
        .q(kinds$7$q),
        .clock(kinds$7$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$kinds$8 kinds$8(
        .d(kinds$8$d),
        .q(kinds$8$q),
        .clock(kinds$8$clock)
    );
    iswitch_accel$datapath$accumulator$scoreboard$blocked blocked(
        .d(blocked$d),
        .q(blocked$q),
        .clock(blocked$clock)
    );
    // Update code
    always @(*) begin
        waiting$clock = clock;
        idle$clock = clock;
        waiting_address$clock = clock;
        waiting_flags$clock = clock;
        blocked$clock = clock;
        waiting$d = waiting$q;
        idle$d = idle$q;
        waiting_address$d = waiting_address$q;
        waiting_flags$d = waiting_flags$q;
        blocked$d = blocked$q;
        same$0$clock = clock;
        flying$0$clock = clock;
        addresses$0$clock = clock;
        kinds$0$clock = clock;
        same$1$clock = clock;
        flying$1$clock = clock;
        addresses$1$clock = clock;
        kinds$1$clock = clock;
        same$2$clock = clock;
        flying$2$clock = clock;
        addresses$2$clock = clock;
        kinds$2$clock = clock;
        same$3$clock = clock;
        flying$3$clock = clock;
        addresses$3$clock = clock;
        kinds$3$clock = clock;
        same$4$clock = clock;
        flying$4$clock = clock;
        addresses$4$clock = clock;
        kinds$4$clock = clock;
        same$5$clock = clock;
        flying$5$clock = clock;
        addresses$5$clock = clock;
        kinds$5$clock = clock;
        same$6$clock = clock;
        flying$6$clock = clock;
        addresses$6$clock = clock;
        kinds$6$clock = clock;
        same$7$clock = clock;
        flying$7$clock = clock;
        addresses$7$clock = clock;
        kinds$7$clock = clock;
        same$8$clock = clock;
        flying$8$clock = clock;
        addresses$8$clock = clock;
        kinds$8$clock = clock;
        may_go = ~blocked$q & (credit | ~waiting_flags$q[(64'h1)+:(1)]);
        go = waiting$q & may_go;
        taken = may_go | ~waiting$q;
        frees = may_go | idle$q;
        load = taken & valid;
        hazard = waiting$q & blocked$q;
        hits$0 = address == waiting_address$q;
        hits$1 = flying$0$q & (address == addresses$0$q);
        hits$2 = flying$1$q & (address == addresses$1$q);
        hits$3 = flying$2$q & (address == addresses$2$q);
        hits$4 = flying$3$q & (address == addresses$3$q);
        hits$5 = flying$4$q & (address == addresses$4$q);
        hits$6 = flying$5$q & (address == addresses$5$q);
        hits$7 = flying$6$q & (address == addresses$6$q);
        hits$8 = flying$7$q & (address == addresses$7$q);
        same$0$d = 1'b0;
        same$1$d = same$0$q;
        flying$1$d = flying$0$q;
        addresses$1$d = addresses$0$q;
        kinds$1$d = kinds$0$q;
        same$2$d = same$1$q;
        flying$2$d = flying$1$q;
        addresses$2$d = addresses$1$q;
        kinds$2$d = kinds$1$q;
        same$3$d = same$2$q;
        flying$3$d = flying$2$q;
        addresses$3$d = addresses$2$q;
        kinds$3$d = kinds$2$q;
        same$4$d = same$3$q;
        flying$4$d = flying$3$q;
        addresses$4$d = addresses$3$q;
        kinds$4$d = kinds$3$q;
        same$5$d = same$4$q;
        flying$5$d = flying$4$q;
        addresses$5$d = addresses$4$q;
        kinds$5$d = kinds$4$q;
        same$6$d = same$5$q;
        flying$6$d = flying$5$q;
        addresses$6$d = addresses$5$q;
        kinds$6$d = kinds$5$q;
        same$7$d = same$6$q;
        flying$7$d = flying$6$q;
        addresses$7$d = addresses$6$q;
        kinds$7$d = kinds$6$q;
        same$8$d = same$7$q;
        flying$8$d = flying$7$q;
        addresses$8$d = addresses$7$q;
        kinds$8$d = kinds$7$q;
        if (taken) begin
            waiting$d = valid;
            idle$d = ~valid;
            waiting_address$d = address;
            waiting_flags$d = flags;
            same$0$d = go & hits$0;
            same$1$d = hits$1;
            same$2$d = hits$2;
            same$3$d = hits$3;
            same$4$d = hits$4;
            same$5$d = hits$5;
            same$6$d = hits$6;
            same$7$d = hits$7;
            same$8$d = hits$8;
        end
        any_hit = 1'b0;
        any_same = 1'b0;
        if (hits$1) begin
            any_hit = 1'b1;
        end
        if (same$0$q) begin
            any_same = 1'b1;
        end
        if (hits$2) begin
            any_hit = 1'b1;
        end
        if (same$1$q) begin
            any_same = 1'b1;
        end
        if (hits$3) begin
            any_hit = 1'b1;
        end
        if (same$2$q) begin
            any_same = 1'b1;
        end
        if (hits$4) begin
            any_hit = 1'b1;
        end
        if (same$3$q) begin
            any_same = 1'b1;
        end
        if (hits$5) begin
            any_hit = 1'b1;
        end
        if (same$4$q) begin
            any_same = 1'b1;
        end
        if (hits$6) begin
            any_hit = 1'b1;
        end
        if (same$5$q) begin
            any_same = 1'b1;
        end
        if (hits$7) begin
            any_hit = 1'b1;
        end
        if (same$6$q) begin
            any_same = 1'b1;
        end
        if (hits$8) begin
            any_hit = 1'b1;
        end
        if (same$7$q) begin
            any_same = 1'b1;
        end
        blocked$d = any_hit;
        if (waiting$q) begin
            blocked$d = any_same;
            if (may_go) begin
                blocked$d = any_hit | hits$0;
            end
        end
        flying$0$d = go;
        addresses$0$d = waiting_address$q;
        kinds$0$d = waiting_flags$q;
        if (reset) begin
            waiting$d = 1'b0;
            idle$d = 1'b1;
            flying$0$d = 1'b0;
            flying$1$d = 1'b0;
            flying$2$d = 1'b0;
            flying$3$d = 1'b0;
            flying$4$d = 1'b0;
            flying$5$d = 1'b0;
            flying$6$d = 1'b0;
            flying$7$d = 1'b0;
            flying$8$d = 1'b0;
        end
        read_address = waiting_address$q;
        first = kinds$0$q[(64'h0)+:(1)];
        write = flying$8$q;
        write_address = addresses$8$q;
        last = kinds$8$q[(64'h1)+:(1)];
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard
module iswitch_accel$datapath$accumulator$scoreboard$addresses$0(d,q,clock);
    // Module arguments
    input wire  [14:0] d;
    output reg  [14:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 15'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$addresses$0
module iswitch_accel$datapath$accumulator$scoreboard$addresses$1(d,q,clock);
    // Module arguments
    input wire  [14:0] d;
    output reg  [14:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 15'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$addresses$1
module iswitch_accel$datapath$accumulator$scoreboard$addresses$2(d,q,clock);
    // Module arguments
    input wire  [14:0] d;
    output reg  [14:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 15'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$addresses$2
module iswitch_accel$datapath$accumulator$scoreboard$addresses$3(d,q,clock);
    // Module arguments
    input wire  [14:0] d;
    output reg  [14:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 15'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$addresses$3
module iswitch_accel$datapath$accumulator$scoreboard$addresses$4(d,q,clock);
    // Module arguments
    input wire  [14:0] d;
    output reg  [14:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 15'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$addresses$4
module iswitch_accel$datapath$accumulator$scoreboard$addresses$5(d,q,clock);
    // Module arguments
    input wire  [14:0] d;
    output reg  [14:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 15'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$addresses$5
module iswitch_accel$datapath$accumulator$scoreboard$addresses$6(d,q,clock);
    // Module arguments
    input wire  [14:0] d;
    output reg  [14:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 15'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$addresses$6
module iswitch_accel$datapath$accumulator$scoreboard$addresses$7(d,q,clock);
    // Module arguments
    input wire  [14:0] d;
    output reg  [14:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 15'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$addresses$7
module iswitch_accel$datapath$accumulator$scoreboard$addresses$8(d,q,clock);
    // Module arguments
    input wire  [14:0] d;
    output reg  [14:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 15'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$addresses$8
module iswitch_accel$datapath$accumulator$scoreboard$blocked(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$blocked
module iswitch_accel$datapath$accumulator$scoreboard$flying$0(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$flying$0
module iswitch_accel$datapath$accumulator$scoreboard$flying$1(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$flying$1
module iswitch_accel$datapath$accumulator$scoreboard$flying$2(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$flying$2
module iswitch_accel$datapath$accumulator$scoreboard$flying$3(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$flying$3
module iswitch_accel$datapath$accumulator$scoreboard$flying$4(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$flying$4
module iswitch_accel$datapath$accumulator$scoreboard$flying$5(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$flying$5
module iswitch_accel$datapath$accumulator$scoreboard$flying$6(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$flying$6
module iswitch_accel$datapath$accumulator$scoreboard$flying$7(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$flying$7
module iswitch_accel$datapath$accumulator$scoreboard$flying$8(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$flying$8
module iswitch_accel$datapath$accumulator$scoreboard$idle(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$idle
module iswitch_accel$datapath$accumulator$scoreboard$kinds$0(d,q,clock);
    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 2'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$kinds$0
module iswitch_accel$datapath$accumulator$scoreboard$kinds$1(d,q,clock);
    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 2'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$kinds$1
module iswitch_accel$datapath$accumulator$scoreboard$kinds$2(d,q,clock);
    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 2'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$kinds$2
module iswitch_accel$datapath$accumulator$scoreboard$kinds$3(d,q,clock);
    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 2'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$kinds$3
module iswitch_accel$datapath$accumulator$scoreboard$kinds$4(d,q,clock);
    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 2'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$kinds$4
module iswitch_accel$datapath$accumulator$scoreboard$kinds$5(d,q,clock);
    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 2'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$kinds$5
module iswitch_accel$datapath$accumulator$scoreboard$kinds$6(d,q,clock);
    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 2'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$kinds$6
module iswitch_accel$datapath$accumulator$scoreboard$kinds$7(d,q,clock);
    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 2'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$kinds$7
module iswitch_accel$datapath$accumulator$scoreboard$kinds$8(d,q,clock);
    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 2'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$kinds$8
module iswitch_accel$datapath$accumulator$scoreboard$same$0(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$same$0
module iswitch_accel$datapath$accumulator$scoreboard$same$1(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$same$1
module iswitch_accel$datapath$accumulator$scoreboard$same$2(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$same$2
module iswitch_accel$datapath$accumulator$scoreboard$same$3(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$same$3
module iswitch_accel$datapath$accumulator$scoreboard$same$4(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$same$4
module iswitch_accel$datapath$accumulator$scoreboard$same$5(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$same$5
module iswitch_accel$datapath$accumulator$scoreboard$same$6(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$same$6
module iswitch_accel$datapath$accumulator$scoreboard$same$7(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$same$7
module iswitch_accel$datapath$accumulator$scoreboard$same$8(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$same$8
module iswitch_accel$datapath$accumulator$scoreboard$waiting(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$waiting
module iswitch_accel$datapath$accumulator$scoreboard$waiting_address(d,q,clock);
    // Module arguments
    input wire  [14:0] d;
    output reg  [14:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 15'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$waiting_address
module iswitch_accel$datapath$accumulator$scoreboard$waiting_flags(d,q,clock);
    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 2'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$scoreboard$waiting_flags
module iswitch_accel$datapath$accumulator$waited(d,q,clock);
    // Module arguments
    input wire  [255:0] d;
    output reg  [255:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 256'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$accumulator$waited
module iswitch_accel$datapath$bursts(clock,reset,data_in,push,data_out,valid,empty,pop,room);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [272:0] data_in;
    input wire  push;
    output reg  [272:0] data_out;
    output reg  valid;
    output reg  empty;
    input wire  pop;
    output reg  room;
    // Constant declarations
    localparam  limit = 8'h1a;
    // Stub signals
    reg  ram$clock;
    reg  [4:0] ram$write_address;
    reg  [272:0] ram$write_data;
    reg  ram$write_enable;
    reg  [4:0] ram$read_address;
    wire  [272:0] ram$read_data;
    reg  [4:0] write_at$d;
    wire  [4:0] write_at$q;
    reg  write_at$clock;
    reg  [4:0] read_at$d;
    wire  [4:0] read_at$q;
    reg  read_at$clock;
    reg  [7:0] count$d;
    wire  [7:0] count$q;
    reg  count$clock;
    reg  filled$d;
    wire  filled$q;
    reg  filled$clock;
    reg  is_empty$d;
    wire  is_empty$q;
    reg  is_empty$clock;
    reg  has_room$d;
    wire  has_room$q;
    reg  has_room$clock;
    // Local signals
    reg  [7:0] next_count;
    // Sub module instances
    iswitch_accel$datapath$bursts$ram ram(
        .clock(ram$clock),
        .write_address(ram$write_address),
        .write_data(ram$write_data),
        .write_enable(ram$write_enable),
        .read_address(ram$read_address),
        .read_data(ram$read_data)
    );
    iswitch_accel$datapath$bursts$write_at write_at(
        .d(write_at$d),
        .q(write_at$q),
        .clock(write_at$clock)
    );
    iswitch_accel$datapath$bursts$read_at read_at(
        .d(read_at$d),
        .q(read_at$q),
        .clock(read_at$clock)
    );
    iswitch_accel$datapath$bursts$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );
    iswitch_accel$datapath$bursts$filled filled(
        .d(filled$d),
        .q(filled$q),
        .clock(filled$clock)
    );
    iswitch_accel$datapath$bursts$is_empty is_empty(
        .d(is_empty$d),
        .q(is_empty$q),
        .clock(is_empty$clock)
    );
    iswitch_accel$datapath$bursts$has_room has_room(
        .d(has_room$d),
        .q(has_room$q),
        .clock(has_room$clock)
    );
    // Update code
    always @(*) begin
        write_at$clock = clock;
        read_at$clock = clock;
        count$clock = clock;
        filled$clock = clock;
        is_empty$clock = clock;
        has_room$clock = clock;
        write_at$d = write_at$q;
        read_at$d = read_at$q;
        count$d = count$q;
        filled$d = filled$q;
        is_empty$d = is_empty$q;
        has_room$d = has_room$q;
        ram$clock = clock;
        ram$write_address = write_at$q;
        ram$write_data = data_in;
        ram$write_enable = push;
        ram$read_address = read_at$q;
        data_out = ram$read_data;
        valid = filled$q;
        empty = is_empty$q;
        room = has_room$q;
        next_count = count$q + 32'h1;
        if (pop) begin
            next_count = count$q - 32'h1;
        end
        if (push) begin
            write_at$d = write_at$q + 32'h1;
        end
        if (pop) begin
            read_at$d = read_at$q + 32'h1;
        end
        if (push ^ pop) begin
            count$d = next_count;
        end
        if (pop) begin
            filled$d = count$q != 32'h1;
            is_empty$d = count$q == 32'h1;
        end
        if (push) begin
            filled$d = 1'b1;
            is_empty$d = 1'b0;
        end
        has_room$d = count$q < limit;
        if (reset) begin
            write_at$d = 32'h0;
            read_at$d = 32'h0;
            count$d = 32'h0;
            filled$d = 1'b0;
            is_empty$d = 1'b1;
            has_room$d = 1'b0;
        end
    end
endmodule // iswitch_accel$datapath$bursts
module iswitch_accel$datapath$bursts$count(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$bursts$count
module iswitch_accel$datapath$bursts$filled(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$bursts$filled
module iswitch_accel$datapath$bursts$has_room(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$bursts$has_room
module iswitch_accel$datapath$bursts$is_empty(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$bursts$is_empty
module iswitch_accel$datapath$bursts$ram(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [4:0] write_address;
    input wire  [272:0] write_data;
    input wire  write_enable;
    input wire  [4:0] read_address;
    output reg  [272:0] read_data;
    // Update code (custom)
    (* ram_style = "distributed" *) reg [272:0] words[31:0];
    integer i;
    initial for (i = 0; i <= 31; i = i + 1) words[i] = 0;
    always @(posedge clock) if (write_enable) words[write_address] <= write_data;
    always @(*) read_data = words[read_address];
endmodule // iswitch_accel$datapath$bursts$ram
module iswitch_accel$datapath$bursts$read_at(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$bursts$read_at
module iswitch_accel$datapath$bursts$write_at(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$bursts$write_at
module iswitch_accel$datapath$control(clock,reset,job,header,strobe,set_threshold,threshold_in,fix_in,fixes,set_halted,halted_in,threshold,halted);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [97:0] job;
    input wire  [102:0] header;
    input wire  strobe;
    input wire  set_threshold;
    input wire  [7:0] threshold_in;
    input wire  fix_in;
    output reg  fixes;
    input wire  set_halted;
    input wire  halted_in;
    output reg  [7:0] threshold;
    output reg  halted;
    // Stub signals
    reg  [102:0] held$d;
    wire  [102:0] held$q;
    reg  held$clock;
    reg  pending$d;
    wire  pending$q;
    reg  pending$clock;
    reg  [7:0] threshold_now$d;
    wire  [7:0] threshold_now$q;
    reg  threshold_now$clock;
    reg  halted_now$d;
    wire  halted_now$q;
    reg  halted_now$clock;
    reg  fixes_now$d;
    wire  fixes_now$q;
    reg  fixes_now$clock;
    // Local signals
    reg  [63:0] raw;
    reg  [15:0] start;
    reg  [31:0] job_high;
    reg  [31:0] job_id;
    reg  [15:0] value;
    reg  trusted;
    reg  in_range;
    // Sub module instances
    iswitch_accel$datapath$control$held held(
        .d(held$d),
        .q(held$q),
        .clock(held$clock)
    );
    iswitch_accel$datapath$control$pending pending(
        .d(pending$d),
        .q(pending$q),
        .clock(pending$clock)
    );
    iswitch_accel$datapath$control$threshold_now threshold_now(
        .d(threshold_now$d),
        .q(threshold_now$q),
        .clock(threshold_now$clock)
    );
    iswitch_accel$datapath$control$halted_now halted_now(
        .d(halted_now$d),
        .q(halted_now$q),
        .clock(halted_now$clock)
    );
    iswitch_accel$datapath$control$fixes_now fixes_now(
        .d(fixes_now$d),
        .q(fixes_now$q),
        .clock(fixes_now$clock)
    );
    // Update code
    always @(*) begin
        held$clock = clock;
        pending$clock = clock;
        threshold_now$clock = clock;
        halted_now$clock = clock;
        fixes_now$clock = clock;
        held$d = held$q;
        pending$d = pending$q;
        threshold_now$d = threshold_now$q;
        halted_now$d = halted_now$q;
        fixes_now$d = fixes_now$q;
        held$d = header;
        pending$d = strobe & ~reset;
        raw = held$q[(64'h7)+:(64)];
        start = raw[(64'h0)+:(16)];
        job_high = ((raw[(64'h30)+:(16)]) & 32'hffffffff) << 32'h10;
        job_id = ((raw[(64'h20)+:(16)]) & 32'hffffffff) | job_high;
        value = held$q[(64'h57)+:(16)];
        trusted = pending$q & held$q[(64'h3)+:(1)] & ~held$q[(64'h2)+:(1)] & (raw[(64'h10)+:(16)] == 32'h0) & (job_id == job[(64'h42)+:(32)]);
        in_range = (value <= 32'h40) & |value;
        if (trusted & (start == 32'h104) & (held$q[(64'h47)+:(16)] == 32'h16) & in_range) begin
            threshold_now$d = value[(32'h0)+:(8)];
        end
        if (trusted & (((start == 32'h103) & (held$q[(64'h47)+:(16)] == 32'h20)) | ((start == 32'h107) & (held$q[(64'h47)+:(16)] == 32'h14)))) begin
            halted_now$d = 1'b1;
        end
        if (set_threshold) begin
            threshold_now$d = threshold_in;
        end
        if (set_halted) begin
            halted_now$d = halted_in;
        end
        if (reset) begin
            halted_now$d = 1'b1;
            threshold_now$d = 32'h0;
        end
        fixes_now$d = set_threshold & fix_in;
        fixes = fixes_now$q;
        threshold = threshold_now$q;
        halted = halted_now$q;
    end
endmodule // iswitch_accel$datapath$control
module iswitch_accel$datapath$control$fixes_now(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$control$fixes_now
module iswitch_accel$datapath$control$halted_now(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$control$halted_now
module iswitch_accel$datapath$control$held(d,q,clock);
    // Module arguments
    input wire  [102:0] d;
    output reg  [102:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 103'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$control$held
module iswitch_accel$datapath$control$pending(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$control$pending
module iswitch_accel$datapath$control$threshold_now(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$control$threshold_now
module iswitch_accel$datapath$counter(clock,reset,is_large,clear,clearing,job,threshold,fix_threshold,halted,members,switches,header,header_valid,header_pop,force_key,force_valid,force_idle,force_next,room,decision,decision_push,result,result_push,asker,repeats,late,late_push,event_code,event_valid,select_slot,slot,table_word,table_value,control);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  is_large;
    input wire  clear;
    output reg  clearing;
    input wire  [97:0] job;
    input wire  [7:0] threshold;
    input wire  fix_threshold;
    input wire  halted;
    input wire  [7:0] members;
    input wire  [7:0] switches;
    input wire  [102:0] header;
    input wire  header_valid;
    output reg  header_pop;
    input wire  [87:0] force_key;
    input wire  force_valid;
    input wire  force_idle;
    output reg  force_next;
    input wire  room;
    output reg  [33:0] decision;
    output reg  decision_push;
    output reg  [72:0] result;
    output reg  result_push;
    output reg  [2:0] asker;
    output reg  repeats;
    output reg  [50:0] late;
    output reg  late_push;
    output reg  [4:0] event_code;
    output reg  event_valid;
    input wire  select_slot;
    input wire  [7:0] slot;
    input wire  [2:0] table_word;
    output reg  [31:0] table_value;
    output reg  control;
    // Enums
    localparam CounterState$Weigh = 0;
    localparam CounterState$Read = 1;
    localparam CounterState$Compare = 2;
    localparam CounterState$Settle = 3;
    localparam CounterState$Clear = 4;
    // Stub signals
    reg  [2:0] state$d;
    wire  [2:0] state$q;
    reg  state$clock;
    reg  takes$d;
    wire  takes$q;
    reg  takes$clock;
    reg  keeps_key$d;
    wire  keeps_key$q;
    reg  keeps_key$clock;
    reg  compares$d;
    wire  compares$q;
    reg  compares$clock;
    reg  clears$d;
    wire  clears$q;
    reg  clears$clock;
    reg  [87:0] reading$d;
    wire  [87:0] reading$q;
    reg  reading$clock;
    reg  [87:0] deciding$d;
    wire  [87:0] deciding$q;
    reg  deciding$clock;
    reg  has_reading$d;
    wire  has_reading$q;
    reg  has_reading$clock;
    reg  has_deciding$d;
    wire  has_deciding$q;
    reg  has_deciding$clock;
    reg  reads_ordinary$d;
    wire  reads_ordinary$q;
    reg  reads_ordinary$clock;
    reg  decides_ordinary$d;
    wire  decides_ordinary$q;
    reg  decides_ordinary$clock;
    reg  decides$d;
    wire  decides$q;
    reg  decides$clock;
    reg  commits$d;
    wire  commits$q;
    reg  commits$clock;
    reg  asked$d;
    wire  asked$q;
    reg  asked$clock;
    reg  [7:0] sweep$d;
    wire  [7:0] sweep$q;
    reg  sweep$clock;
    reg  [102:0] decoder$header;
    wire  [87:0] decoder$key;
    reg  lookup$clock;
    reg  lookup$is_large;
    reg  [97:0] lookup$job;
    reg  [7:0] lookup$threshold;
    reg  lookup$fix_threshold;
    reg  lookup$halted;
    reg  [7:0] lookup$members;
    reg  [7:0] lookup$switches;
    reg  [87:0] lookup$reading;
    reg  [87:0] lookup$deciding;
    reg  lookup$commit;
    reg  lookup$sweeping;
    reg  [7:0] lookup$sweep;
    wire  lookup$accept;
    wire  [4:0] lookup$event_code;
    wire  lookup$late;
    wire  [33:0] lookup$decision;
    wire  [72:0] lookup$result;
    reg  lookup$select_slot;
    reg  [7:0] lookup$slot;
    reg  [2:0] lookup$table_word;
    wire  [31:0] lookup$table_value;
    reg  bypass$copied;
    reg  bypass$trusted;
    reg  [2:0] bypass$member;
    wire  [33:0] bypass$decision;
    // Local signals
    reg  may_take;
    reg  takes_force;
    reg  takes_header;
    reg  passes;
    reg  follows;
    reg  proceeds;
    reg  accepts;
    reg  concludes;
    // Sub module instances
    iswitch_accel$datapath$counter$state state(
        .d(state$d),
        .q(state$q),
        .clock(state$clock)
    );
    iswitch_accel$datapath$counter$takes takes(
        .d(takes$d),
        .q(takes$q),
        .clock(takes$clock)
    );
    iswitch_accel$datapath$counter$keeps_key keeps_key(
        .d(keeps_key$d),
        .q(keeps_key$q),
        .clock(keeps_key$clock)
    );
    iswitch_accel$datapath$counter$compares compares(
        .d(compares$d),
        .q(compares$q),
        .clock(compares$clock)
    );
    iswitch_accel$datapath$counter$clears clears(
        .d(clears$d),
        .q(clears$q),
        .clock(clears$clock)
    );
    iswitch_accel$datapath$counter$reading reading(
        .d(reading$d),
        .q(reading$q),
        .clock(reading$clock)
    );
    iswitch_accel$datapath$counter$deciding deciding(
        .d(deciding$d),
        .q(deciding$q),
        .clock(deciding$clock)
    );
    iswitch_accel$datapath$counter$has_reading has_reading(
        .d(has_reading$d),
        .q(has_reading$q),
        .clock(has_reading$clock)
    );
    iswitch_accel$datapath$counter$has_deciding has_deciding(
        .d(has_deciding$d),
        .q(has_deciding$q),
        .clock(has_deciding$clock)
    );
    iswitch_accel$datapath$counter$reads_ordinary reads_ordinary(
        .d(reads_ordinary$d),
        .q(reads_ordinary$q),
        .clock(reads_ordinary$clock)
    );
    iswitch_accel$datapath$counter$decides_ordinary decides_ordinary(
        .d(decides_ordinary$d),
        .q(decides_ordinary$q),
        .clock(decides_ordinary$clock)
    );
    iswitch_accel$datapath$counter$decides decides(
        .d(decides$d),
        .q(decides$q),
        .clock(decides$clock)
    );
    iswitch_accel$datapath$counter$commits commits(
        .d(commits$d),
        .q(commits$q),
        .clock(commits$clock)
    );
    iswitch_accel$datapath$counter$asked asked(
        .d(asked$d),
        .q(asked$q),
        .clock(asked$clock)
    );
    iswitch_accel$datapath$counter$sweep sweep(
        .d(sweep$d),
        .q(sweep$q),
        .clock(sweep$clock)
    );
    iswitch_accel$datapath$counter$decoder decoder(
        .header(decoder$header),
        .key(decoder$key)
    );
    iswitch_accel$datapath$counter$lookup lookup(
        .clock(lookup$clock),
        .is_large(lookup$is_large),
        .job(lookup$job),
        .threshold(lookup$threshold),
        .fix_threshold(lookup$fix_threshold),
        .halted(lookup$halted),
        .members(lookup$members),
        .switches(lookup$switches),
        .reading(lookup$reading),
        .deciding(lookup$deciding),
        .commit(lookup$commit),
        .sweeping(lookup$sweeping),
        .sweep(lookup$sweep),
        .accept(lookup$accept),
        .event_code(lookup$event_code),
        .late(lookup$late),
        .decision(lookup$decision),
        .result(lookup$result),
        .select_slot(lookup$select_slot),
        .slot(lookup$slot),
        .table_word(lookup$table_word),
        .table_value(lookup$table_value)
    );
    iswitch_accel$datapath$counter$bypass bypass(
        .copied(bypass$copied),
        .trusted(bypass$trusted),
        .member(bypass$member),
        .decision(bypass$decision)
    );
    // Update code
    always @(*) begin
        state$clock = clock;
        takes$clock = clock;
        keeps_key$clock = clock;
        compares$clock = clock;
        clears$clock = clock;
        asked$clock = clock;
        sweep$clock = clock;
        decides$clock = clock;
        commits$clock = clock;
        state$d = state$q;
        takes$d = takes$q;
        keeps_key$d = keeps_key$q;
        compares$d = compares$q;
        clears$d = clears$q;
        asked$d = asked$q;
        sweep$d = sweep$q;
        decides$d = decides$q;
        commits$d = commits$q;
        reading$clock = clock;
        deciding$clock = clock;
        has_reading$clock = clock;
        has_deciding$clock = clock;
        reads_ordinary$clock = clock;
        decides_ordinary$clock = clock;
        reading$d = reading$q;
        deciding$d = deciding$q;
        has_reading$d = has_reading$q;
        has_deciding$d = has_deciding$q;
        reads_ordinary$d = reads_ordinary$q;
        decides_ordinary$d = decides_ordinary$q;
        lookup$clock = clock;
        decoder$header = header;
        lookup$is_large = is_large;
        lookup$job = job;
        lookup$threshold = threshold;
        lookup$fix_threshold = fix_threshold;
        lookup$halted = halted;
        lookup$members = members;
        lookup$switches = switches;
        lookup$reading = reading$q;
        lookup$deciding = deciding$q;
        lookup$commit = commits$q;
        lookup$sweeping = clears$q;
        lookup$select_slot = select_slot;
        lookup$slot = slot;
        lookup$table_word = table_word;
        table_value = lookup$table_value;
        lookup$sweep = sweep$q;
        may_take = takes$q & room;
        takes_force = may_take & force_valid;
        takes_header = may_take & ~force_valid & header_valid & (~header[(64'h1)+:(1)] | ~has_deciding$q);
        force_next = takes_force;
        header_pop = takes_header;
        if (~keeps_key$q) begin
            reading$d = decoder$key;
            if (~force_idle) begin
                reading$d = force_key;
            end
            reads_ordinary$d = ~header[(64'h0)+:(1)] & ~force_valid;
        end
        if (compares$q) begin
            deciding$d = reading$q;
            decides_ordinary$d = reads_ordinary$q;
        end
        passes = may_take & ~force_valid & header_valid & ~header[(64'h0)+:(1)] & ~has_deciding$q;
        follows = takes_force | (takes_header & ~passes);
        proceeds = has_deciding$q | (may_take & (force_valid | (header_valid & header[(64'h0)+:(1)])));
        control = passes & header[(64'h1)+:(1)];
        accepts = commits$q & lookup$accept;
        concludes = decides$q & (lookup$accept | ~deciding$q[(64'h55)+:(1)] | decides_ordinary$q);
        bypass$copied = control;
        bypass$member = header[(64'h4)+:(3)];
        bypass$trusted = control & header[(64'h3)+:(1)] & ~header[(64'h2)+:(1)];
        decision = bypass$decision;
        event_code = 32'h0;
        if (control) begin
            event_code = 32'h1;
        end
        if (commits$q) begin
            decision = lookup$decision;
            event_code = lookup$event_code;
        end
        decision_push = passes | concludes;
        event_valid = decision_push | (commits$q & deciding$q[(64'h57)+:(1)]);
        asker = deciding$q[(64'h50)+:(3)];
        repeats = deciding$q[(64'h57)+:(1)];
        late[(64'h0)+:(24)] = deciding$q[(64'h0)+:(24)];
        late[(64'h18)+:(24)] = deciding$q[(64'h18)+:(24)];
        late[(64'h30)+:(3)] = deciding$q[(64'h50)+:(3)];
        result = lookup$result;
        late_push = commits$q & lookup$late;
        result_push = accepts & lookup$decision[(64'h4)+:(1)];
        clearing = asked$q;
        case (state$q)
            CounterState$Weigh:
                begin
                    if (follows) begin
                        has_reading$d = 1'b1;
                    end
                    if (proceeds) begin
                        state$d = CounterState$Read;
                    end
                    else if (asked$q) begin
                        state$d = CounterState$Clear;
                    end
                end
            CounterState$Read:
                begin
                    state$d = CounterState$Compare;
                end
            CounterState$Compare:
                begin
                    state$d = CounterState$Weigh;
                    has_deciding$d = has_reading$q;
                    has_reading$d = 1'b0;
                    if (accepts & has_reading$q & ~reads_ordinary$q) begin
                        state$d = CounterState$Settle;
                        has_deciding$d = 1'b0;
                        has_reading$d = 1'b1;
                    end
                end
            CounterState$Settle:
                begin
                    state$d = CounterState$Read;
                end
            CounterState$Clear:
                begin
                    sweep$d = sweep$q + 32'h1;
                    if (&sweep$q) begin
                        state$d = CounterState$Weigh;
                        asked$d = 1'b0;
                    end
                end
            default:
                begin
                    state$d = CounterState$Weigh;
                end
        endcase
        if (clear | reset) begin
            asked$d = 1'b1;
            sweep$d = 32'h0;
        end
        if (reset) begin
            state$d = CounterState$Weigh;
            has_reading$d = 1'b0;
            has_deciding$d = 1'b0;
        end
        takes$d = (state$d == CounterState$Weigh) & ~asked$d;
        keeps_key$d = state$d != CounterState$Weigh;
        compares$d = (state$q == CounterState$Read) & ~reset;
        decides$d = compares$d & has_deciding$q;
        commits$d = decides$d & ~decides_ordinary$q;
        clears$d = state$d == CounterState$Clear;
    end
endmodule // iswitch_accel$datapath$counter
module iswitch_accel$datapath$counter$asked(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$asked
module iswitch_accel$datapath$counter$bypass(copied,trusted,member,decision);
    // Module arguments
    input wire  copied;
    input wire  trusted;
    input wire  [2:0] member;
    output reg  [33:0] decision;
    // Update code
    always @(*) begin
        decision[(64'h0)+:(1)] = 1'b1;
        decision[(64'h1)+:(1)] = 1'b0;
        decision[(64'h2)+:(1)] = 1'b0;
        decision[(64'h3)+:(1)] = 1'b0;
        decision[(64'h4)+:(1)] = 1'b0;
        decision[(64'h5)+:(15)] = 32'h0;
        decision[(64'h14)+:(6)] = 32'h0;
        decision[(64'h1a)+:(3)] = 32'h0;
        decision[(64'h1d)+:(1)] = copied;
        decision[(64'h1e)+:(1)] = trusted;
        decision[(64'h1f)+:(3)] = member;
    end
endmodule // iswitch_accel$datapath$counter$bypass
module iswitch_accel$datapath$counter$clears(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$clears
module iswitch_accel$datapath$counter$commits(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$commits
module iswitch_accel$datapath$counter$compares(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$compares
module iswitch_accel$datapath$counter$decides(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$decides
module iswitch_accel$datapath$counter$decides_ordinary(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$decides_ordinary
module iswitch_accel$datapath$counter$deciding(d,q,clock);
    // Module arguments
    input wire  [87:0] d;
    output reg  [87:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 88'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$deciding
module iswitch_accel$datapath$counter$decoder(header,key);
    // Module arguments
    input wire  [102:0] header;
    output reg  [87:0] key;
    // Local signals
    reg  [63:0] raw;
    reg  [15:0] middle;
    reg  [23:0] index_high;
    reg  [23:0] round_high;
    reg  [15:0] total;
    // Update code
    always @(*) begin
        raw = header[(64'h7)+:(64)];
        middle = raw[(64'h10)+:(16)];
        index_high = ((middle[(32'h0)+:(8)]) & 24'hffffff) << 32'h10;
        key[(64'h0)+:(24)] = ((raw[(64'h0)+:(16)]) & 24'hffffff) | index_high;
        round_high = ((raw[(64'h20)+:(16)]) & 24'hffffff) << 32'h8;
        key[(64'h18)+:(24)] = ((middle[(32'h8)+:(8)]) & 24'hffffff) | round_high;
        total = raw[(64'h30)+:(16)];
        key[(64'h30)+:(16)] = total;
        if (~|total) begin
            key[(64'h30)+:(16)] = 32'h1;
        end
        if (&total) begin
            key[(64'h30)+:(16)] = 32'h0;
        end
        key[(64'h40)+:(16)] = header[(64'h47)+:(16)];
        key[(64'h50)+:(3)] = header[(64'h4)+:(3)];
        key[(64'h53)+:(1)] = header[(64'h3)+:(1)];
        key[(64'h54)+:(1)] = header[(64'h2)+:(1)];
        key[(64'h55)+:(1)] = 1'b0;
        key[(64'h56)+:(1)] = 1'b0;
        key[(64'h57)+:(1)] = 1'b0;
    end
endmodule // iswitch_accel$datapath$counter$decoder
module iswitch_accel$datapath$counter$has_deciding(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$has_deciding
module iswitch_accel$datapath$counter$has_reading(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$has_reading
module iswitch_accel$datapath$counter$keeps_key(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$keeps_key
module iswitch_accel$datapath$counter$lookup(clock,is_large,job,threshold,fix_threshold,halted,members,switches,reading,deciding,commit,sweeping,sweep,accept,event_code,late,decision,result,select_slot,slot,table_word,table_value);
    // Module arguments
    input wire  clock;
    input wire  is_large;
    input wire  [97:0] job;
    input wire  [7:0] threshold;
    input wire  fix_threshold;
    input wire  halted;
    input wire  [7:0] members;
    input wire  [7:0] switches;
    input wire  [87:0] reading;
    input wire  [87:0] deciding;
    input wire  commit;
    input wire  sweeping;
    input wire  [7:0] sweep;
    output reg  accept;
    output reg  [4:0] event_code;
    output reg  late;
    output reg  [33:0] decision;
    output reg  [72:0] result;
    input wire  select_slot;
    input wire  [7:0] slot;
    input wire  [2:0] table_word;
    output reg  [31:0] table_value;
    // Stub signals
    reg  limits$clock;
    reg  [97:0] limits$job;
    reg  [23:0] limits$index;
    reg  [15:0] limits$udp_len;
    wire  limits$out_of_range;
    wire  limits$wrong_length;
    wire  [8:0] limits$floats;
    reg  addresses$clock;
    reg  addresses$is_large;
    reg  [23:0] addresses$index;
    wire  [7:0] addresses$slot;
    wire  [13:0] addresses$address;
    reg  rounds$clock;
    reg  rounds$clear;
    reg  [97:0] rounds$job;
    reg  [7:0] rounds$threshold;
    reg  [7:0] rounds$members;
    reg  rounds$fix_threshold;
    reg  [23:0] rounds$round;
    wire  rounds$opens;
    wire  rounds$has_place;
    wire  rounds$is_past;
    wire  [7:0] rounds$needed;
    wire  [7:0] rounds$participants;
    reg  rounds$decided_parity;
    reg  rounds$open;
    reg  rounds$finish;
    wire  [105:0] rounds$view;
    reg  slots$clock;
    reg  slots$is_large;
    reg  [97:0] slots$job;
    reg  [7:0] slots$slot;
    reg  [23:0] slots$index;
    reg  [23:0] slots$round;
    wire  [85:0] slots$entry;
    wire  [5:0] slots$relation;
    wire  slots$wraps;
    reg  slots$write;
    reg  [7:0] slots$write_slot;
    reg  [85:0] slots$write_entry;
    reg  [7:0] slots$peeks;
    wire  [85:0] slots$peeked;
    reg  verdict$clock;
    reg  [87:0] verdict$key;
    reg  [85:0] verdict$entry;
    reg  [5:0] verdict$relation;
    reg  verdict$halted;
    reg  verdict$out_of_range;
    reg  verdict$wrong_length;
    reg  verdict$has_place;
    reg  verdict$is_past;
    reg  [7:0] verdict$needed;
    reg  [7:0] verdict$participants;
    reg  [7:0] verdict$switches;
    wire  verdict$accept;
    wire  verdict$first;
    wire  verdict$last;
    wire  [4:0] verdict$event_code;
    wire  verdict$late;
    wire  [7:0] verdict$members;
    wire  [15:0] verdict$total;
    wire  verdict$bank;
    wire  verdict$has_previous;
    wire  [15:0] verdict$previous_total;
    reg  [87:0] outcome$key;
    reg  outcome$accept;
    reg  outcome$first;
    reg  outcome$last;
    reg  [7:0] outcome$members;
    reg  [15:0] outcome$total;
    reg  outcome$wraps;
    reg  [8:0] outcome$floats;
    reg  [13:0] outcome$address;
    reg  outcome$bank;
    reg  outcome$has_previous;
    reg  [15:0] outcome$previous_total;
    wire  [85:0] outcome$entry;
    wire  [85:0] outcome$empty;
    wire  [33:0] outcome$decision;
    wire  [72:0] outcome$result;
    reg  tables$clock;
    reg  tables$select;
    reg  [7:0] tables$slot;
    wire  [7:0] tables$peeks;
    reg  [85:0] tables$entry;
    reg  [105:0] tables$rounds;
    reg  [2:0] tables$word;
    wire  [31:0] tables$value;
    reg  may_open$d;
    wire  may_open$q;
    reg  may_open$clock;
    reg  opening$d;
    wire  opening$q;
    reg  opening$clock;
    reg  finishing$d;
    wire  finishing$q;
    reg  finishing$clock;
    reg  parity$d;
    wire  parity$q;
    reg  parity$clock;
    // Local signals
    reg  [23:0] index;
    reg  [23:0] round;
    reg  changes;
    // Sub module instances
    iswitch_accel$datapath$counter$lookup$limits limits(
        .clock(limits$clock),
        .job(limits$job),
        .index(limits$index),
        .udp_len(limits$udp_len),
        .out_of_range(limits$out_of_range),
        .wrong_length(limits$wrong_length),
        .floats(limits$floats)
    );
    iswitch_accel$datapath$counter$lookup$addresses addresses(
        .clock(addresses$clock),
        .is_large(addresses$is_large),
        .index(addresses$index),
        .slot(addresses$slot),
        .address(addresses$address)
    );
    iswitch_accel$datapath$counter$lookup$rounds rounds(
        .clock(rounds$clock),
        .clear(rounds$clear),
        .job(rounds$job),
        .threshold(rounds$threshold),
        .members(rounds$members),
        .fix_threshold(rounds$fix_threshold),
        .round(rounds$round),
        .opens(rounds$opens),
        .has_place(rounds$has_place),
        .is_past(rounds$is_past),
        .needed(rounds$needed),
        .participants(rounds$participants),
        .decided_parity(rounds$decided_parity),
        .open(rounds$open),
        .finish(rounds$finish),
        .view(rounds$view)
    );
    iswitch_accel$datapath$counter$lookup$slots slots(
        .clock(slots$clock),
        .is_large(slots$is_large),
        .job(slots$job),
        .slot(slots$slot),
        .index(slots$index),
        .round(slots$round),
        .entry(slots$entry),
        .relation(slots$relation),
        .wraps(slots$wraps),
        .write(slots$write),
        .write_slot(slots$write_slot),
        .write_entry(slots$write_entry),
        .peeks(slots$peeks),
        .peeked(slots$peeked)
    );
    iswitch_accel$datapath$counter$lookup$verdict verdict(
        .clock(verdict$clock),
        .key(verdict$key),
        .entry(verdict$entry),
        .relation(verdict$relation),
        .halted(verdict$halted),
        .out_of_range(verdict$out_of_range),
        .wrong_length(verdict$wrong_length),
        .has_place(verdict$has_place),
        .is_past(verdict$is_past),
        .needed(verdict$needed),
        .participants(verdict$participants),
        .switches(verdict$switches),
        .accept(verdict$accept),
        .first(verdict$first),
        .last(verdict$last),
        .event_code(verdict$event_code),
        .late(verdict$late),
        .members(verdict$members),
        .total(verdict$total),
        .bank(verdict$bank),
        .has_previous(verdict$has_previous),
        .previous_total(verdict$previous_total)
    );
    iswitch_accel$datapath$counter$lookup$outcome outcome(
        .key(outcome$key),
        .accept(outcome$accept),
        .first(outcome$first),
        .last(outcome$last),
        .members(outcome$members),
        .total(outcome$total),
        .wraps(outcome$wraps),
        .floats(outcome$floats),
        .address(outcome$address),
        .bank(outcome$bank),
        .has_previous(outcome$has_previous),
        .previous_total(outcome$previous_total),
        .entry(outcome$entry),
        .empty(outcome$empty),
        .decision(outcome$decision),
        .result(outcome$result)
    );
    iswitch_accel$datapath$counter$lookup$tables tables(
        .clock(tables$clock),
        .select(tables$select),
        .slot(tables$slot),
        .peeks(tables$peeks),
        .entry(tables$entry),
        .rounds(tables$rounds),
        .word(tables$word),
        .value(tables$value)
    );
    iswitch_accel$datapath$counter$lookup$may_open may_open(
        .d(may_open$d),
        .q(may_open$q),
        .clock(may_open$clock)
    );
    iswitch_accel$datapath$counter$lookup$opening opening(
        .d(opening$d),
        .q(opening$q),
        .clock(opening$clock)
    );
    iswitch_accel$datapath$counter$lookup$finishing finishing(
        .d(finishing$d),
        .q(finishing$q),
        .clock(finishing$clock)
    );
    iswitch_accel$datapath$counter$lookup$parity parity(
        .d(parity$d),
        .q(parity$q),
        .clock(parity$clock)
    );
    // Update code
    always @(*) begin
        may_open$clock = clock;
        opening$clock = clock;
        finishing$clock = clock;
        parity$clock = clock;
        may_open$d = may_open$q;
        opening$d = opening$q;
        finishing$d = finishing$q;
        parity$d = parity$q;
        limits$clock = clock;
        addresses$clock = clock;
        rounds$clock = clock;
        slots$clock = clock;
        verdict$clock = clock;
        tables$clock = clock;
        limits$job = job;
        limits$index = reading[(64'h0)+:(24)];
        limits$udp_len = reading[(64'h40)+:(16)];
        addresses$is_large = is_large;
        addresses$index = reading[(64'h0)+:(24)];
        rounds$clear = sweeping;
        rounds$job = job;
        rounds$threshold = threshold;
        rounds$fix_threshold = fix_threshold;
        rounds$members = members;
        rounds$round = reading[(64'h18)+:(24)];
        slots$is_large = is_large;
        slots$job = job;
        slots$slot = addresses$slot;
        slots$index = reading[(64'h0)+:(24)];
        slots$round = reading[(64'h18)+:(24)];
        verdict$key = deciding;
        verdict$entry = slots$entry;
        verdict$relation = slots$relation;
        verdict$halted = halted;
        verdict$out_of_range = limits$out_of_range;
        verdict$wrong_length = limits$wrong_length;
        verdict$has_place = rounds$has_place;
        verdict$is_past = rounds$is_past;
        verdict$needed = rounds$needed;
        verdict$participants = rounds$participants;
        verdict$switches = switches;
        outcome$key = deciding;
        outcome$accept = verdict$accept;
        outcome$first = verdict$first;
        outcome$last = verdict$last;
        outcome$members = verdict$members;
        outcome$total = verdict$total;
        outcome$wraps = slots$wraps;
        outcome$floats = limits$floats;
        outcome$address = addresses$address;
        outcome$bank = verdict$bank;
        outcome$has_previous = verdict$has_previous;
        outcome$previous_total = verdict$previous_total;
        index = deciding[(64'h0)+:(24)];
        round = deciding[(64'h18)+:(24)];
        changes = commit & verdict$accept & ~deciding[(64'h57)+:(1)];
        slots$write = changes;
        slots$write_slot = ((index[(32'h0)+:(7)]) & 8'hff);
        if (is_large) begin
            slots$write_slot = index[(32'h0)+:(8)];
        end
        slots$write_entry = outcome$entry;
        if (sweeping) begin
            slots$write = 1'b1;
            slots$write_slot = sweep;
            slots$write_entry = outcome$empty;
        end
        may_open$d = rounds$opens;
        opening$d = changes & may_open$q;
        finishing$d = changes & verdict$last;
        parity$d = round[32'h0];
        rounds$decided_parity = parity$q;
        rounds$open = opening$q;
        rounds$finish = finishing$q;
        tables$select = select_slot;
        tables$slot = slot;
        tables$word = table_word;
        tables$entry = slots$peeked;
        tables$rounds = rounds$view;
        slots$peeks = tables$peeks;
        table_value = tables$value;
        accept = verdict$accept;
        event_code = verdict$event_code;
        late = verdict$late;
        decision = outcome$decision;
        result = outcome$result;
    end
endmodule // iswitch_accel$datapath$counter$lookup
module iswitch_accel$datapath$counter$lookup$addresses(clock,is_large,index,slot,address);
    // Module arguments
    input wire  clock;
    input wire  is_large;
    input wire  [23:0] index;
    output reg  [7:0] slot;
    output reg  [13:0] address;
    // Stub signals
    reg  [13:0] triple$d;
    wire  [13:0] triple$q;
    reg  triple$clock;
    reg  [7:0] held_slot$d;
    wire  [7:0] held_slot$q;
    reg  held_slot$clock;
    reg  [13:0] out_address$d;
    wire  [13:0] out_address$q;
    reg  out_address$clock;
    // Local signals
    reg  [7:0] chosen;
    reg  [13:0] once;
    reg  [13:0] twice;
    reg  [13:0] by_48;
    reg  [13:0] by_2;
    // Sub module instances
    iswitch_accel$datapath$counter$lookup$addresses$triple triple(
        .d(triple$d),
        .q(triple$q),
        .clock(triple$clock)
    );
    iswitch_accel$datapath$counter$lookup$addresses$held_slot held_slot(
        .d(held_slot$d),
        .q(held_slot$q),
        .clock(held_slot$clock)
    );
    iswitch_accel$datapath$counter$lookup$addresses$out_address out_address(
        .d(out_address$d),
        .q(out_address$q),
        .clock(out_address$clock)
    );
    // Update code
    always @(*) begin
        triple$clock = clock;
        held_slot$clock = clock;
        out_address$clock = clock;
        triple$d = triple$q;
        held_slot$d = held_slot$q;
        out_address$d = out_address$q;
        chosen = ((index[(32'h0)+:(7)]) & 8'hff);
        if (is_large) begin
            chosen = index[(32'h0)+:(8)];
        end
        slot = chosen;
        once = ((chosen) & 14'h3fff);
        twice = ((chosen) & 14'h3fff) << 32'h1;
        triple$d = once + twice;
        held_slot$d = chosen;
        by_48 = triple$q << 32'h4;
        by_2 = ((held_slot$q) & 14'h3fff) << 32'h1;
        out_address$d = by_48 - by_2;
        address = out_address$q;
    end
endmodule // iswitch_accel$datapath$counter$lookup$addresses
module iswitch_accel$datapath$counter$lookup$addresses$held_slot(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$addresses$held_slot
module iswitch_accel$datapath$counter$lookup$addresses$out_address(d,q,clock);
    // Module arguments
    input wire  [13:0] d;
    output reg  [13:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 14'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$addresses$out_address
module iswitch_accel$datapath$counter$lookup$addresses$triple(d,q,clock);
    // Module arguments
    input wire  [13:0] d;
    output reg  [13:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 14'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$addresses$triple
module iswitch_accel$datapath$counter$lookup$finishing(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$finishing
module iswitch_accel$datapath$counter$lookup$limits(clock,job,index,udp_len,out_of_range,wrong_length,floats);
    // Module arguments
    input wire  clock;
    input wire  [97:0] job;
    input wire  [23:0] index;
    input wire  [15:0] udp_len;
    output reg  out_of_range;
    output reg  wrong_length;
    output reg  [8:0] floats;
    // Stub signals
    reg  beyond$d;
    wire  beyond$q;
    reg  beyond$clock;
    reg  [8:0] expected$d;
    wire  [8:0] expected$q;
    reg  expected$clock;
    reg  beyond_later$d;
    wire  beyond_later$q;
    reg  beyond_later$clock;
    reg  [8:0] expected_later$d;
    wire  [8:0] expected_later$q;
    reg  expected_later$clock;
    reg  wrong$d;
    wire  wrong$q;
    reg  wrong$clock;
    // Local signals
    reg  [23:0] last_index;
    reg  [15:0] float_bytes;
    reg  [15:0] expected_len;
    // Sub module instances
    iswitch_accel$datapath$counter$lookup$limits$beyond beyond(
        .d(beyond$d),
        .q(beyond$q),
        .clock(beyond$clock)
    );
    iswitch_accel$datapath$counter$lookup$limits$expected expected(
        .d(expected$d),
        .q(expected$q),
        .clock(expected$clock)
    );
    iswitch_accel$datapath$counter$lookup$limits$beyond_later beyond_later(
        .d(beyond_later$d),
        .q(beyond_later$q),
        .clock(beyond_later$clock)
    );
    iswitch_accel$datapath$counter$lookup$limits$expected_later expected_later(
        .d(expected_later$d),
        .q(expected_later$q),
        .clock(expected_later$clock)
    );
    iswitch_accel$datapath$counter$lookup$limits$wrong wrong(
        .d(wrong$d),
        .q(wrong$q),
        .clock(wrong$clock)
    );
    // Update code
    always @(*) begin
        beyond$clock = clock;
        expected$clock = clock;
        beyond_later$clock = clock;
        expected_later$clock = clock;
        wrong$clock = clock;
        beyond$d = beyond$q;
        expected$d = expected$q;
        beyond_later$d = beyond_later$q;
        expected_later$d = expected_later$q;
        wrong$d = wrong$q;
        last_index = job[(64'h18)+:(24)];
        beyond$d = index > last_index;
        expected$d = job[(64'h30)+:(9)];
        if (index == last_index) begin
            expected$d = job[(64'h39)+:(9)];
        end
        float_bytes = ((expected$q) & 16'hffff) << 32'h2;
        expected_len = float_bytes + 32'h10;
        wrong$d = expected_len != udp_len;
        beyond_later$d = beyond$q;
        expected_later$d = expected$q;
        out_of_range = beyond_later$q;
        wrong_length = wrong$q;
        floats = expected_later$q;
    end
endmodule // iswitch_accel$datapath$counter$lookup$limits
module iswitch_accel$datapath$counter$lookup$limits$beyond(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$limits$beyond
module iswitch_accel$datapath$counter$lookup$limits$beyond_later(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$limits$beyond_later
module iswitch_accel$datapath$counter$lookup$limits$expected(d,q,clock);
    // Module arguments
    input wire  [8:0] d;
    output reg  [8:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 9'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$limits$expected
module iswitch_accel$datapath$counter$lookup$limits$expected_later(d,q,clock);
    // Module arguments
    input wire  [8:0] d;
    output reg  [8:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 9'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$limits$expected_later
module iswitch_accel$datapath$counter$lookup$limits$wrong(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$limits$wrong
module iswitch_accel$datapath$counter$lookup$may_open(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$may_open
module iswitch_accel$datapath$counter$lookup$opening(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$opening
module iswitch_accel$datapath$counter$lookup$outcome(key,accept,first,last,members,total,wraps,floats,address,bank,has_previous,previous_total,entry,empty,decision,result);
    // Module arguments
    input wire  [87:0] key;
    input wire  accept;
    input wire  first;
    input wire  last;
    input wire  [7:0] members;
    input wire  [15:0] total;
    input wire  wraps;
    input wire  [8:0] floats;
    input wire  [13:0] address;
    input wire  bank;
    input wire  has_previous;
    input wire  [15:0] previous_total;
    output reg  [85:0] entry;
    output reg  [85:0] empty;
    output reg  [33:0] decision;
    output reg  [72:0] result;
    // Local signals
    reg  [23:0] index;
    reg  [23:0] round;
    reg  [15:0] round_low;
    reg  [14:0] places;
    reg  [63:0] raw;
    reg  [8:0] before_last;
    // Update code
    always @(*) begin
        places = ((address) & 15'h7fff) << 32'h1;
        index = key[(64'h0)+:(24)];
        round = key[(64'h18)+:(24)];
        entry[(64'h0)+:(1)] = ~last;
        entry[(64'h1)+:(1)] = last;
        entry[(64'h2)+:(1)] = wraps;
        entry[(64'h3)+:(17)] = index[(32'h7)+:(17)];
        entry[(64'h14)+:(24)] = round;
        entry[(64'h2c)+:(8)] = members;
        entry[(64'h34)+:(16)] = total;
        entry[(64'h44)+:(1)] = bank;
        entry[(64'h45)+:(1)] = has_previous;
        entry[(64'h46)+:(16)] = previous_total;
        empty[(64'h0)+:(1)] = 1'b0;
        empty[(64'h1)+:(1)] = 1'b0;
        empty[(64'h2)+:(1)] = 1'b0;
        empty[(64'h3)+:(17)] = 32'h0;
        empty[(64'h14)+:(24)] = 32'h0;
        empty[(64'h2c)+:(8)] = 32'h0;
        empty[(64'h34)+:(16)] = 32'h0;
        empty[(64'h44)+:(1)] = 1'b0;
        empty[(64'h45)+:(1)] = 1'b0;
        empty[(64'h46)+:(16)] = 32'h0;
        before_last = floats - 32'h1;
        decision[(64'h0)+:(1)] = 1'b0;
        decision[(64'h1)+:(1)] = ~accept;
        decision[(64'h2)+:(1)] = key[(64'h55)+:(1)];
        decision[(64'h3)+:(1)] = first;
        decision[(64'h4)+:(1)] = last;
        decision[(64'h5)+:(15)] = places;
        if (bank) begin
            decision[(64'h5)+:(15)] = places + 32'h1;
        end
        decision[(64'h14)+:(6)] = before_last[(32'h3)+:(6)];
        decision[(64'h1a)+:(3)] = floats[(32'h0)+:(3)];
        decision[(64'h1d)+:(1)] = 1'b0;
        decision[(64'h1e)+:(1)] = 1'b0;
        decision[(64'h1f)+:(3)] = 32'h0;
        raw[(64'h0)+:(16)] = index[(32'h0)+:(16)];
        round_low = ((round[(32'h0)+:(8)]) & 16'hffff) << 32'h8;
        raw[(64'h10)+:(16)] = ((index[(32'h10)+:(8)]) & 16'hffff) | round_low;
        raw[(64'h20)+:(16)] = round[(32'h8)+:(16)];
        raw[(64'h30)+:(16)] = total;
        if (~|total) begin
            raw[(64'h30)+:(16)] = 32'hffff;
        end
        result[(64'h0)+:(64)] = raw;
        result[(64'h40)+:(9)] = floats;
    end
endmodule // iswitch_accel$datapath$counter$lookup$outcome
module iswitch_accel$datapath$counter$lookup$parity(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$parity
module iswitch_accel$datapath$counter$lookup$rounds(clock,clear,job,threshold,members,fix_threshold,round,opens,has_place,is_past,needed,participants,decided_parity,open,finish,view);
    // Module arguments
    input wire  clock;
    input wire  clear;
    input wire  [97:0] job;
    input wire  [7:0] threshold;
    input wire  [7:0] members;
    input wire  fix_threshold;
    input wire  [23:0] round;
    output reg  opens;
    output reg  has_place;
    output reg  is_past;
    output reg  [7:0] needed;
    output reg  [7:0] participants;
    input wire  decided_parity;
    input wire  open;
    input wire  finish;
    output reg  [105:0] view;
    // Stub signals
    reg  [23:0] next_round$d;
    wire  [23:0] next_round$q;
    reg  next_round$clock;
    reg  [24:0] unfinished$0$d;
    wire  [24:0] unfinished$0$q;
    reg  unfinished$0$clock;
    reg  [24:0] unfinished$1$d;
    wire  [24:0] unfinished$1$q;
    reg  unfinished$1$clock;
    reg  [7:0] needs$0$d;
    wire  [7:0] needs$0$q;
    reg  needs$0$clock;
    reg  [7:0] needs$1$d;
    wire  [7:0] needs$1$q;
    reg  needs$1$clock;
    reg  [7:0] takes_part$0$d;
    wire  [7:0] takes_part$0$q;
    reg  takes_part$0$clock;
    reg  [7:0] takes_part$1$d;
    wire  [7:0] takes_part$1$q;
    reg  takes_part$1$clock;
    reg  is_next$d;
    wire  is_next$q;
    reg  is_next$clock;
    reg  is_free$d;
    wire  is_free$q;
    reg  is_free$clock;
    reg  past$d;
    wire  past$q;
    reg  past$clock;
    reg  [7:0] out_needed$d;
    wire  [7:0] out_needed$q;
    reg  out_needed$clock;
    reg  [7:0] out_participants$d;
    wire  [7:0] out_participants$q;
    reg  out_participants$clock;
    // Local signals
    reg  [24:0] segments;
    reg  [23:0] behind;
    reg  parity;
    reg  there$0;
    reg  there$1;
    reg  decided$0;
    reg  decided$1;
    reg  [24:0] left$0;
    reg  [24:0] left$1;
    // Sub module instances
    iswitch_accel$datapath$counter$lookup$rounds$next_round next_round(
        .d(next_round$d),
        .q(next_round$q),
        .clock(next_round$clock)
    );
    iswitch_accel$datapath$counter$lookup$rounds$unfinished$0 unfinished$0(
        .d(unfinished$0$d),
        .q(unfinished$0$q),
        .clock(unfinished$0$clock)
    );
    iswitch_accel$datapath$counter$lookup$rounds$unfinished$1 unfinished$1(
        .d(unfinished$1$d),
        .q(unfinished$1$q),
        .clock(unfinished$1$clock)
    );
    iswitch_accel$datapath$counter$lookup$rounds$needs$0 needs$0(
        .d(needs$0$d),
        .q(needs$0$q),
        .clock(needs$0$clock)
    );
    iswitch_accel$datapath$counter$lookup$rounds$needs$1 needs$1(
        .d(needs$1$d),
        .q(needs$1$q),
        .clock(needs$1$clock)
    );
    iswitch_accel$datapath$counter$lookup$rounds$takes_part$0 takes_part$0(
        .d(takes_part$0$d),
        .q(takes_part$0$q),
        .clock(takes_part$0$clock)
    );
    iswitch_accel$datapath$counter$lookup$rounds$takes_part$1 takes_part$1(
        .d(takes_part$1$d),
        .q(takes_part$1$q),
        .clock(takes_part$1$clock)
    );
    iswitch_accel$datapath$counter$lookup$rounds$is_next is_next(
        .d(is_next$d),
        .q(is_next$q),
        .clock(is_next$clock)
    );
    iswitch_accel$datapath$counter$lookup$rounds$is_free is_free(
        .d(is_free$d),
        .q(is_free$q),
        .clock(is_free$clock)
    );
    iswitch_accel$datapath$counter$lookup$rounds$past past(
        .d(past$d),
        .q(past$q),
        .clock(past$clock)
    );
    iswitch_accel$datapath$counter$lookup$rounds$out_needed out_needed(
        .d(out_needed$d),
        .q(out_needed$q),
        .clock(out_needed$clock)
    );
    iswitch_accel$datapath$counter$lookup$rounds$out_participants out_participants(
        .d(out_participants$d),
        .q(out_participants$q),
        .clock(out_participants$clock)
    );
    // Update code
    always @(*) begin
        next_round$clock = clock;
        is_next$clock = clock;
        is_free$clock = clock;
        past$clock = clock;
        out_needed$clock = clock;
        out_participants$clock = clock;
        next_round$d = next_round$q;
        is_next$d = is_next$q;
        is_free$d = is_free$q;
        past$d = past$q;
        out_needed$d = out_needed$q;
        out_participants$d = out_participants$q;
        segments = ((job[(64'h18)+:(24)]) & 25'h1ffffff) + 32'h1;
        parity = round[32'h0];
        there$0 = ~parity;
        there$1 = parity;
        decided$0 = ~decided_parity;
        decided$1 = decided_parity;
        is_next$d = round == next_round$q;
        behind = next_round$q - round;
        past$d = ~behind[32'h17] & (|behind[(32'h2)+:(22)] | &behind[(32'h0)+:(2)]);
        is_free$d = 1'b0;
        out_needed$d = threshold;
        out_participants$d = members;
        unfinished$0$clock = clock;
        needs$0$clock = clock;
        takes_part$0$clock = clock;
        needs$0$d = needs$0$q;
        takes_part$0$d = takes_part$0$q & members;
        left$0 = unfinished$0$q;
        if (fix_threshold) begin
            needs$0$d = threshold;
        end
        if (decided$0 & open) begin
            left$0 = segments;
            needs$0$d = threshold;
            takes_part$0$d = members;
        end
        unfinished$0$d = left$0;
        if (decided$0 & finish) begin
            unfinished$0$d = left$0 - 32'h1;
        end
        if (there$0 & ~|unfinished$0$q) begin
            is_free$d = 1'b1;
        end
        if (there$0 & (round != next_round$q)) begin
            out_needed$d = needs$0$q;
            out_participants$d = takes_part$0$q;
        end
        if (clear) begin
            unfinished$0$d = 32'h0;
        end
        unfinished$1$clock = clock;
        needs$1$clock = clock;
        takes_part$1$clock = clock;
        needs$1$d = needs$1$q;
        takes_part$1$d = takes_part$1$q & members;
        left$1 = unfinished$1$q;
        if (fix_threshold) begin
            needs$1$d = threshold;
        end
        if (decided$1 & open) begin
            left$1 = segments;
            needs$1$d = threshold;
            takes_part$1$d = members;
        end
        unfinished$1$d = left$1;
        if (decided$1 & finish) begin
            unfinished$1$d = left$1 - 32'h1;
        end
        if (there$1 & ~|unfinished$1$q) begin
            is_free$d = 1'b1;
        end
        if (there$1 & (round != next_round$q)) begin
            out_needed$d = needs$1$q;
            out_participants$d = takes_part$1$q;
        end
        if (clear) begin
            unfinished$1$d = 32'h0;
        end
        if (open) begin
            next_round$d = next_round$q + 32'h1;
        end
        if (clear) begin
            next_round$d = job[(64'h0)+:(24)];
        end
        view[(64'h0)+:(24)] = next_round$q;
        view[(64'h18)+:(25)] = unfinished$0$q;
        view[(64'h31)+:(25)] = unfinished$1$q;
        view[(64'h4a)+:(8)] = needs$0$q;
        view[(64'h52)+:(8)] = needs$1$q;
        view[(64'h5a)+:(8)] = takes_part$0$q;
        view[(64'h62)+:(8)] = takes_part$1$q;
        opens = is_next$q;
        is_past = past$q;
        has_place = is_free$q | ~is_next$q;
        needed = out_needed$q;
        participants = out_participants$q;
    end
endmodule // iswitch_accel$datapath$counter$lookup$rounds
module iswitch_accel$datapath$counter$lookup$rounds$is_free(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$rounds$is_free
module iswitch_accel$datapath$counter$lookup$rounds$is_next(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$rounds$is_next
module iswitch_accel$datapath$counter$lookup$rounds$needs$0(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$rounds$needs$0
module iswitch_accel$datapath$counter$lookup$rounds$needs$1(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$rounds$needs$1
module iswitch_accel$datapath$counter$lookup$rounds$next_round(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$rounds$next_round
module iswitch_accel$datapath$counter$lookup$rounds$out_needed(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$rounds$out_needed
module iswitch_accel$datapath$counter$lookup$rounds$out_participants(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$rounds$out_participants
module iswitch_accel$datapath$counter$lookup$rounds$past(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$rounds$past
module iswitch_accel$datapath$counter$lookup$rounds$takes_part$0(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$rounds$takes_part$0
module iswitch_accel$datapath$counter$lookup$rounds$takes_part$1(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$rounds$takes_part$1
module iswitch_accel$datapath$counter$lookup$rounds$unfinished$0(d,q,clock);
    // Module arguments
    input wire  [24:0] d;
    output reg  [24:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 25'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$rounds$unfinished$0
module iswitch_accel$datapath$counter$lookup$rounds$unfinished$1(d,q,clock);
    // Module arguments
    input wire  [24:0] d;
    output reg  [24:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 25'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$rounds$unfinished$1
module iswitch_accel$datapath$counter$lookup$slots(clock,is_large,job,slot,index,round,entry,relation,wraps,write,write_slot,write_entry,peeks,peeked);
    // Module arguments
    input wire  clock;
    input wire  is_large;
    input wire  [97:0] job;
    input wire  [7:0] slot;
    input wire  [23:0] index;
    input wire  [23:0] round;
    output reg  [85:0] entry;
    output reg  [5:0] relation;
    output reg  wraps;
    input wire  write;
    input wire  [7:0] write_slot;
    input wire  [85:0] write_entry;
    input wire  [7:0] peeks;
    output reg  [85:0] peeked;
    // Stub signals
    reg  words$clock;
    reg  [7:0] words$write_address;
    reg  [85:0] words$write_data;
    reg  words$write_enable;
    reg  [7:0] words$read_address;
    wire  [85:0] words$read_data;
    reg  copy$clock;
    reg  [7:0] copy$write_address;
    reg  [85:0] copy$write_data;
    reg  copy$write_enable;
    reg  [7:0] copy$read_address;
    wire  [85:0] copy$read_data;
    reg  [16:0] tag_before$d;
    wire  [16:0] tag_before$q;
    reg  tag_before$clock;
    reg  [23:0] round_before$d;
    wire  [23:0] round_before$q;
    reg  round_before$clock;
    reg  [17:0] tag_after$d;
    wire  [17:0] tag_after$q;
    reg  tag_after$clock;
    reg  [23:0] round_after$d;
    wire  [23:0] round_after$q;
    reg  round_after$clock;
    reg  at_base$d;
    wire  at_base$q;
    reg  at_base$clock;
    reg  below_base$d;
    wire  below_base$q;
    reg  below_base$clock;
    reg  [85:0] held_entry$d;
    wire  [85:0] held_entry$q;
    reg  held_entry$clock;
    reg  [5:0] held$d;
    wire  [5:0] held$q;
    reg  held$clock;
    reg  early_wraps$d;
    wire  early_wraps$q;
    reg  early_wraps$clock;
    reg  held_wraps$d;
    wire  held_wraps$q;
    reg  held_wraps$clock;
    // Local signals
    reg  [85:0] found;
    reg  [16:0] tag;
    reg  [16:0] old_tag;
    reg  [16:0] step;
    reg  old_is_first;
    reg  [23:0] old_round;
    reg  [23:0] distance;
    reg  [23:0] since_base;
    reg  first_tag;
    reg  same_round;
    reg  same_tag;
    reg  next_in_round;
    reg  next_round;
    reg  [24:0] successor;
    reg  [24:0] slots;
    reg  [24:0] last_index;
    // Sub module instances
    iswitch_accel$datapath$counter$lookup$slots$words words(
        .clock(words$clock),
        .write_address(words$write_address),
        .write_data(words$write_data),
        .write_enable(words$write_enable),
        .read_address(words$read_address),
        .read_data(words$read_data)
    );
    iswitch_accel$datapath$counter$lookup$slots$copy copy(
        .clock(copy$clock),
        .write_address(copy$write_address),
        .write_data(copy$write_data),
        .write_enable(copy$write_enable),
        .read_address(copy$read_address),
        .read_data(copy$read_data)
    );
    iswitch_accel$datapath$counter$lookup$slots$tag_before tag_before(
        .d(tag_before$d),
        .q(tag_before$q),
        .clock(tag_before$clock)
    );
    iswitch_accel$datapath$counter$lookup$slots$round_before round_before(
        .d(round_before$d),
        .q(round_before$q),
        .clock(round_before$clock)
    );
    iswitch_accel$datapath$counter$lookup$slots$tag_after tag_after(
        .d(tag_after$d),
        .q(tag_after$q),
        .clock(tag_after$clock)
    );
    iswitch_accel$datapath$counter$lookup$slots$round_after round_after(
        .d(round_after$d),
        .q(round_after$q),
        .clock(round_after$clock)
    );
    iswitch_accel$datapath$counter$lookup$slots$at_base at_base(
        .d(at_base$d),
        .q(at_base$q),
        .clock(at_base$clock)
    );
    iswitch_accel$datapath$counter$lookup$slots$below_base below_base(
        .d(below_base$d),
        .q(below_base$q),
        .clock(below_base$clock)
    );
    iswitch_accel$datapath$counter$lookup$slots$held_entry held_entry(
        .d(held_entry$d),
        .q(held_entry$q),
        .clock(held_entry$clock)
    );
    iswitch_accel$datapath$counter$lookup$slots$held held(
        .d(held$d),
        .q(held$q),
        .clock(held$clock)
    );
    iswitch_accel$datapath$counter$lookup$slots$early_wraps early_wraps(
        .d(early_wraps$d),
        .q(early_wraps$q),
        .clock(early_wraps$clock)
    );
    iswitch_accel$datapath$counter$lookup$slots$held_wraps held_wraps(
        .d(held_wraps$d),
        .q(held_wraps$q),
        .clock(held_wraps$clock)
    );
    // Update code
    always @(*) begin
        tag_before$clock = clock;
        round_before$clock = clock;
        at_base$clock = clock;
        below_base$clock = clock;
        held_entry$clock = clock;
        held$clock = clock;
        tag_before$d = tag_before$q;
        round_before$d = round_before$q;
        at_base$d = at_base$q;
        below_base$d = below_base$q;
        held_entry$d = held_entry$q;
        held$d = held$q;
        early_wraps$clock = clock;
        held_wraps$clock = clock;
        tag_after$clock = clock;
        round_after$clock = clock;
        early_wraps$d = early_wraps$q;
        held_wraps$d = held_wraps$q;
        tag_after$d = tag_after$q;
        round_after$d = round_after$q;
        words$clock = clock;
        copy$clock = clock;
        words$read_address = slot;
        words$write_address = write_slot;
        words$write_data = write_entry;
        words$write_enable = write;
        copy$read_address = peeks;
        copy$write_address = write_slot;
        copy$write_data = write_entry;
        copy$write_enable = write;
        peeked = copy$read_data;
        found = words$read_data;
        tag = index[(32'h7)+:(17)];
        old_tag = found[(64'h3)+:(17)];
        old_round = found[(64'h14)+:(24)];
        step = 32'h1;
        slots = 32'h80;
        first_tag = ~|index[(32'h7)+:(17)];
        old_is_first = ~|old_tag;
        if (is_large) begin
            step = 32'h2;
            slots = 32'h100;
            first_tag = ~|index[(32'h8)+:(16)];
            old_is_first = ~|old_tag[(32'h1)+:(16)];
        end
        tag_before$d = tag - step;
        round_before$d = round - 32'h1;
        tag_after$d = ((tag) & 18'h3ffff) + ((step) & 18'h3ffff);
        round_after$d = round + 32'h1;
        distance = round - old_round;
        since_base = round - job[(64'h0)+:(24)];
        same_round = round == old_round;
        same_tag = tag == old_tag;
        next_in_round = same_round & (tag_before$q == old_tag);
        next_round = (round_before$q == old_round) & first_tag & found[(64'h2)+:(1)];
        held$d[(64'h5)+:(1)] = (same_round & (tag_after$q == ((old_tag) & 18'h3ffff))) | ((round_after$q == old_round) & old_is_first & early_wraps$q);
        held$d[(64'h0)+:(1)] = same_round & same_tag;
        held$d[(64'h1)+:(1)] = distance[32'h17] | (same_round & (tag < old_tag));
        held$d[(64'h2)+:(1)] = next_in_round | next_round;
        at_base$d = ~|since_base & first_tag;
        below_base$d = since_base[32'h17];
        held$d[(64'h3)+:(1)] = at_base$q;
        held$d[(64'h4)+:(1)] = below_base$q;
        held_entry$d = found;
        successor = ((index) & 25'h1ffffff) + slots;
        last_index = ((job[(64'h18)+:(24)]) & 25'h1ffffff);
        early_wraps$d = successor > last_index;
        held_wraps$d = early_wraps$q;
        entry = held_entry$q;
        relation = held$q;
        wraps = held_wraps$q;
    end
endmodule // iswitch_accel$datapath$counter$lookup$slots
module iswitch_accel$datapath$counter$lookup$slots$at_base(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$slots$at_base
module iswitch_accel$datapath$counter$lookup$slots$below_base(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$slots$below_base
module iswitch_accel$datapath$counter$lookup$slots$copy(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [7:0] write_address;
    input wire  [85:0] write_data;
    input wire  write_enable;
    input wire  [7:0] read_address;
    output reg  [85:0] read_data;
    // Update code (custom)
    (* ram_style = "block" *) reg [85:0] words[255:0];
    integer i;
    initial begin
       for (i = 0; i <= 255; i = i + 1) words[i] = 0;
       read_data = 0;
    end
    always @(posedge clock) begin
       read_data <= words[read_address];
       if (write_enable) words[write_address] <= write_data;
    end
endmodule // iswitch_accel$datapath$counter$lookup$slots$copy
module iswitch_accel$datapath$counter$lookup$slots$early_wraps(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$slots$early_wraps
module iswitch_accel$datapath$counter$lookup$slots$held(d,q,clock);
    // Module arguments
    input wire  [5:0] d;
    output reg  [5:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 6'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$slots$held
module iswitch_accel$datapath$counter$lookup$slots$held_entry(d,q,clock);
    // Module arguments
    input wire  [85:0] d;
    output reg  [85:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 86'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$slots$held_entry
module iswitch_accel$datapath$counter$lookup$slots$held_wraps(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$slots$held_wraps
module iswitch_accel$datapath$counter$lookup$slots$round_after(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$slots$round_after
module iswitch_accel$datapath$counter$lookup$slots$round_before(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$slots$round_before
module iswitch_accel$datapath$counter$lookup$slots$tag_after(d,q,clock);
    // Module arguments
    input wire  [17:0] d;
    output reg  [17:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 18'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$slots$tag_after
module iswitch_accel$datapath$counter$lookup$slots$tag_before(d,q,clock);
    // Module arguments
    input wire  [16:0] d;
    output reg  [16:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 17'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$slots$tag_before
module iswitch_accel$datapath$counter$lookup$slots$words(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [7:0] write_address;
    input wire  [85:0] write_data;
    input wire  write_enable;
    input wire  [7:0] read_address;
    output reg  [85:0] read_data;
    // Update code (custom)
    (* ram_style = "block" *) reg [85:0] words[255:0];
    integer i;
    initial begin
       for (i = 0; i <= 255; i = i + 1) words[i] = 0;
       read_data = 0;
    end
    always @(posedge clock) begin
       read_data <= words[read_address];
       if (write_enable) words[write_address] <= write_data;
    end
endmodule // iswitch_accel$datapath$counter$lookup$slots$words
module iswitch_accel$datapath$counter$lookup$tables(clock,select,slot,peeks,entry,rounds,word,value);
    // Module arguments
    input wire  clock;
    input wire  select;
    input wire  [7:0] slot;
    output reg  [7:0] peeks;
    input wire  [85:0] entry;
    input wire  [105:0] rounds;
    input wire  [2:0] word;
    output reg  [31:0] value;
    // Stub signals
    reg  [7:0] chosen$d;
    wire  [7:0] chosen$q;
    reg  chosen$clock;
    reg  selected$d;
    wire  selected$q;
    reg  selected$clock;
    reg  reads$d;
    wire  reads$q;
    reg  reads$clock;
    reg  [85:0] held$d;
    wire  [85:0] held$q;
    reg  held$clock;
    reg  [7:0] held_slot$d;
    wire  [7:0] held_slot$q;
    reg  held_slot$clock;
    reg  picks$0$d;
    wire  picks$0$q;
    reg  picks$0$clock;
    reg  picks$1$d;
    wire  picks$1$q;
    reg  picks$1$clock;
    reg  picks$2$d;
    wire  picks$2$q;
    reg  picks$2$clock;
    reg  picks$3$d;
    wire  picks$3$q;
    reg  picks$3$clock;
    reg  picks$4$d;
    wire  picks$4$q;
    reg  picks$4$clock;
    reg  picks$5$d;
    wire  picks$5$q;
    reg  picks$5$clock;
    reg  picks$6$d;
    wire  picks$6$q;
    reg  picks$6$clock;
    reg  picks$7$d;
    wire  picks$7$q;
    reg  picks$7$clock;
    reg  [31:0] shown$d;
    wire  [31:0] shown$q;
    reg  shown$clock;
    // Local signals
    reg  [31:0] words$0;
    reg  [31:0] words$1;
    reg  [31:0] words$2;
    reg  [31:0] words$3;
    reg  [31:0] words$4;
    reg  [31:0] words$5;
    reg  [31:0] words$6;
    reg  [31:0] words$7;
    reg  [31:0] picked$0;
    reg  [31:0] picked$1;
    reg  [31:0] picked$2;
    reg  [31:0] picked$3;
    reg  [31:0] picked$4;
    reg  [31:0] picked$5;
    reg  [31:0] picked$6;
    reg  [31:0] picked$7;
    reg  [31:0] state;
    reg  [31:0] segment;
    reg  [31:0] rules;
    reg  [31:0] flags$0;
    reg  [31:0] flags$1;
    reg  [31:0] flags$2;
    reg  [31:0] flags$3;
    // Sub module instances
    iswitch_accel$datapath$counter$lookup$tables$chosen chosen(
        .d(chosen$d),
        .q(chosen$q),
        .clock(chosen$clock)
    );
    iswitch_accel$datapath$counter$lookup$tables$selected selected(
        .d(selected$d),
        .q(selected$q),
        .clock(selected$clock)
    );
    iswitch_accel$datapath$counter$lookup$tables$reads reads(
        .d(reads$d),
        .q(reads$q),
        .clock(reads$clock)
    );
    iswitch_accel$datapath$counter$lookup$tables$held held(
        .d(held$d),
        .q(held$q),
        .clock(held$clock)
    );
    iswitch_accel$datapath$counter$lookup$tables$held_slot held_slot(
        .d(held_slot$d),
        .q(held_slot$q),
        .clock(held_slot$clock)
    );
    iswitch_accel$datapath$counter$lookup$tables$picks$0 picks$0(
        .d(picks$0$d),
        .q(picks$0$q),
        .clock(picks$0$clock)
    );
    iswitch_accel$datapath$counter$lookup$tables$picks$1 picks$1(
        .d(picks$1$d),
        .q(picks$1$q),
        .clock(picks$1$clock)
    );
    iswitch_accel$datapath$counter$lookup$tables$picks$2 picks$2(
        .d(picks$2$d),
        .q(picks$2$q),
        .clock(picks$2$clock)
    );
    iswitch_accel$datapath$counter$lookup$tables$picks$3 picks$3(
        .d(picks$3$d),
        .q(picks$3$q),
        .clock(picks$3$clock)
    );
    iswitch_accel$datapath$counter$lookup$tables$picks$4 picks$4(
        .d(picks$4$d),
        .q(picks$4$q),
        .clock(picks$4$clock)
    );
    iswitch_accel$datapath$counter$lookup$tables$picks$5 picks$5(
        .d(picks$5$d),
        .q(picks$5$q),
        .clock(picks$5$clock)
    );
    iswitch_accel$datapath$counter$lookup$tables$picks$6 picks$6(
        .d(picks$6$d),
        .q(picks$6$q),
        .clock(picks$6$clock)
    );
    iswitch_accel$datapath$counter$lookup$tables$picks$7 picks$7(
        .d(picks$7$d),
        .q(picks$7$q),
        .clock(picks$7$clock)
    );
    iswitch_accel$datapath$counter$lookup$tables$shown shown(
        .d(shown$d),
        .q(shown$q),
        .clock(shown$clock)
    );
    // Update code
    always @(*) begin
        chosen$clock = clock;
        selected$clock = clock;
        reads$clock = clock;
        held$clock = clock;
        held_slot$clock = clock;
        shown$clock = clock;
        chosen$d = chosen$q;
        selected$d = selected$q;
        reads$d = reads$q;
        held$d = held$q;
        held_slot$d = held_slot$q;
        shown$d = shown$q;
        selected$d = select;
        reads$d = selected$q;
        if (select) begin
            chosen$d = slot;
        end
        peeks = chosen$q;
        if (reads$q) begin
            held$d = entry;
            held_slot$d = chosen$q;
        end
        flags$0 = 32'h0;
        flags$1 = 32'h0;
        flags$2 = 32'h0;
        flags$3 = 32'h0;
        if (held$q[(64'h0)+:(1)]) begin
            flags$0 = 32'h1;
        end
        if (held$q[(64'h1)+:(1)]) begin
            flags$1 = 32'h2;
        end
        if (held$q[(64'h45)+:(1)]) begin
            flags$2 = 32'h4;
        end
        if (held$q[(64'h44)+:(1)]) begin
            flags$3 = 32'h8;
        end
        state = flags$0 | flags$1 | flags$2 | flags$3 | (((held$q[(64'h2c)+:(8)]) & 32'hffffffff) << 32'h8) | (((held$q[(64'h34)+:(16)]) & 32'hffffffff) << 32'h10);
        segment = (((held$q[(64'h3)+:(17)]) & 32'hffffffff) << 32'h7) | ((held_slot$q[(32'h0)+:(7)]) & 32'hffffffff);
        rules = ((rounds[(64'h4a)+:(8)]) & 32'hffffffff) | (((rounds[(64'h5a)+:(8)]) & 32'hffffffff) << 32'h8) | (((rounds[(64'h52)+:(8)]) & 32'hffffffff) << 32'h10) | (((rounds[(64'h62)+:(8)]) & 32'hffffffff) << 32'h18);
        words$0 = state;
        words$1 = ((held$q[(64'h14)+:(24)]) & 32'hffffffff);
        words$2 = segment;
        words$3 = ((held$q[(64'h46)+:(16)]) & 32'hffffffff);
        words$4 = ((rounds[(64'h0)+:(24)]) & 32'hffffffff);
        words$5 = ((rounds[(64'h18)+:(25)]) & 32'hffffffff);
        words$6 = ((rounds[(64'h31)+:(25)]) & 32'hffffffff);
        words$7 = rules;
        picks$0$clock = clock;
        picks$0$d = word == 0;
        picked$0 = 32'h0;
        if (picks$0$q) begin
            picked$0 = words$0;
        end
        picks$1$clock = clock;
        picks$1$d = word == 1;
        picked$1 = 32'h0;
        if (picks$1$q) begin
            picked$1 = words$1;
        end
        picks$2$clock = clock;
        picks$2$d = word == 2;
        picked$2 = 32'h0;
        if (picks$2$q) begin
            picked$2 = words$2;
        end
        picks$3$clock = clock;
        picks$3$d = word == 3;
        picked$3 = 32'h0;
        if (picks$3$q) begin
            picked$3 = words$3;
        end
        picks$4$clock = clock;
        picks$4$d = word == 4;
        picked$4 = 32'h0;
        if (picks$4$q) begin
            picked$4 = words$4;
        end
        picks$5$clock = clock;
        picks$5$d = word == 5;
        picked$5 = 32'h0;
        if (picks$5$q) begin
            picked$5 = words$5;
        end
        picks$6$clock = clock;
        picks$6$d = word == 6;
        picked$6 = 32'h0;
        if (picks$6$q) begin
            picked$6 = words$6;
        end
        picks$7$clock = clock;
        picks$7$d = word == 7;
        picked$7 = 32'h0;
        if (picks$7$q) begin
            picked$7 = words$7;
        end
        shown$d = picked$0 | picked$1 | picked$2 | picked$3 | picked$4 | picked$5 | picked$6 | picked$7;
        value = shown$q;
    end
endmodule // iswitch_accel$datapath$counter$lookup$tables
module iswitch_accel$datapath$counter$lookup$tables$chosen(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$tables$chosen
module iswitch_accel$datapath$counter$lookup$tables$held(d,q,clock);
    // Module arguments
    input wire  [85:0] d;
    output reg  [85:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 86'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$tables$held
module iswitch_accel$datapath$counter$lookup$tables$held_slot(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$tables$held_slot
module iswitch_accel$datapath$counter$lookup$tables$picks$0(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$tables$picks$0
module iswitch_accel$datapath$counter$lookup$tables$picks$1(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$tables$picks$1
module iswitch_accel$datapath$counter$lookup$tables$picks$2(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$tables$picks$2
module iswitch_accel$datapath$counter$lookup$tables$picks$3(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$tables$picks$3
module iswitch_accel$datapath$counter$lookup$tables$picks$4(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$tables$picks$4
module iswitch_accel$datapath$counter$lookup$tables$picks$5(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$tables$picks$5
module iswitch_accel$datapath$counter$lookup$tables$picks$6(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$tables$picks$6
module iswitch_accel$datapath$counter$lookup$tables$picks$7(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$tables$picks$7
module iswitch_accel$datapath$counter$lookup$tables$reads(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$tables$reads
module iswitch_accel$datapath$counter$lookup$tables$selected(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$tables$selected
module iswitch_accel$datapath$counter$lookup$tables$shown(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$tables$shown
module iswitch_accel$datapath$counter$lookup$verdict(clock,key,entry,relation,halted,out_of_range,wrong_length,has_place,is_past,needed,participants,switches,accept,first,last,event_code,late,members,total,bank,has_previous,previous_total);
    // Module arguments
    input wire  clock;
    input wire  [87:0] key;
    input wire  [85:0] entry;
    input wire  [5:0] relation;
    input wire  halted;
    input wire  out_of_range;
    input wire  wrong_length;
    input wire  has_place;
    input wire  is_past;
    input wire  [7:0] needed;
    input wire  [7:0] participants;
    input wire  [7:0] switches;
    output reg  accept;
    output reg  first;
    output reg  last;
    output reg  [4:0] event_code;
    output reg  late;
    output reg  [7:0] members;
    output reg  [15:0] total;
    output reg  bank;
    output reg  has_previous;
    output reg  [15:0] previous_total;
    // Stub signals
    reg  [7:0] count$bits;
    wire  [3:0] count$count;
    reg  [7:0] weighed$d;
    wire  [7:0] weighed$q;
    reg  weighed$clock;
    reg  [7:0] held_members$d;
    wire  [7:0] held_members$q;
    reg  held_members$clock;
    reg  [15:0] held_total$d;
    wire  [15:0] held_total$q;
    reg  held_total$clock;
    reg  held_bank$d;
    wire  held_bank$q;
    reg  held_bank$clock;
    reg  held_has_previous$d;
    wire  held_has_previous$q;
    reg  held_has_previous$clock;
    reg  [15:0] held_previous_total$d;
    wire  [15:0] held_previous_total$q;
    reg  held_previous_total$clock;
    reg  fails$d;
    wire  fails$q;
    reg  fails$clock;
    reg  [4:0] code$d;
    wire  [4:0] code$q;
    reg  code$clock;
    reg  is_last$d;
    wire  is_last$q;
    reg  is_last$clock;
    reg  is_late$d;
    wire  is_late$q;
    reg  is_late$clock;
    // Local signals
    reg  [7:0] own;
    reg  [3:0] ones;
    reg  needs$0;
    reg  needs$1;
    reg  needs$2;
    reg  needs$3;
    reg  needs$4;
    reg  needs$5;
    reg  needs$6;
    reg  needs$7;
    reg  needs$8;
    reg  needs_most$0;
    reg  needs_most$1;
    reg  needs_most$2;
    reg  needs_most$3;
    reg  needs_most$4;
    reg  needs_most$5;
    reg  needs_most$6;
    reg  needs_most$7;
    reg  needs_most$8;
    reg  [16:0] old_total;
    reg  [16:0] new_total;
    reg  empty;
    reg  enough;
    reg  closes;
    // Sub module instances
    iswitch_accel$datapath$counter$lookup$verdict$count count(
        .bits(count$bits),
        .count(count$count)
    );
    iswitch_accel$datapath$counter$lookup$verdict$weighed weighed(
        .d(weighed$d),
        .q(weighed$q),
        .clock(weighed$clock)
    );
    iswitch_accel$datapath$counter$lookup$verdict$held_members held_members(
        .d(held_members$d),
        .q(held_members$q),
        .clock(held_members$clock)
    );
    iswitch_accel$datapath$counter$lookup$verdict$held_total held_total(
        .d(held_total$d),
        .q(held_total$q),
        .clock(held_total$clock)
    );
    iswitch_accel$datapath$counter$lookup$verdict$held_bank held_bank(
        .d(held_bank$d),
        .q(held_bank$q),
        .clock(held_bank$clock)
    );
    iswitch_accel$datapath$counter$lookup$verdict$held_has_previous held_has_previous(
        .d(held_has_previous$d),
        .q(held_has_previous$q),
        .clock(held_has_previous$clock)
    );
    iswitch_accel$datapath$counter$lookup$verdict$held_previous_total held_previous_total(
        .d(held_previous_total$d),
        .q(held_previous_total$q),
        .clock(held_previous_total$clock)
    );
    iswitch_accel$datapath$counter$lookup$verdict$fails fails(
        .d(fails$d),
        .q(fails$q),
        .clock(fails$clock)
    );
    iswitch_accel$datapath$counter$lookup$verdict$code code(
        .d(code$d),
        .q(code$q),
        .clock(code$clock)
    );
    iswitch_accel$datapath$counter$lookup$verdict$is_last is_last(
        .d(is_last$d),
        .q(is_last$q),
        .clock(is_last$clock)
    );
    iswitch_accel$datapath$counter$lookup$verdict$is_late is_late(
        .d(is_late$d),
        .q(is_late$q),
        .clock(is_late$clock)
    );
    // Update code
    always @(*) begin
        weighed$clock = clock;
        held_members$clock = clock;
        held_total$clock = clock;
        fails$clock = clock;
        code$clock = clock;
        is_last$clock = clock;
        is_late$clock = clock;
        weighed$d = weighed$q;
        held_members$d = held_members$q;
        held_total$d = held_total$q;
        fails$d = fails$q;
        code$d = code$q;
        is_last$d = is_last$q;
        is_late$d = is_late$q;
        held_bank$clock = clock;
        held_has_previous$clock = clock;
        held_previous_total$clock = clock;
        held_bank$d = held_bank$q;
        held_has_previous$d = held_has_previous$q;
        held_previous_total$d = held_previous_total$q;
        own = 32'h0;
        if ((key[(64'h50)+:(3)] == 0) & ~key[(64'h55)+:(1)]) begin
            own = (64'h1 << 0);
        end
        if ((key[(64'h50)+:(3)] == 1) & ~key[(64'h55)+:(1)]) begin
            own = (64'h1 << 1);
        end
        if ((key[(64'h50)+:(3)] == 2) & ~key[(64'h55)+:(1)]) begin
            own = (64'h1 << 2);
        end
        if ((key[(64'h50)+:(3)] == 3) & ~key[(64'h55)+:(1)]) begin
            own = (64'h1 << 3);
        end
        if ((key[(64'h50)+:(3)] == 4) & ~key[(64'h55)+:(1)]) begin
            own = (64'h1 << 4);
        end
        if ((key[(64'h50)+:(3)] == 5) & ~key[(64'h55)+:(1)]) begin
            own = (64'h1 << 5);
        end
        if ((key[(64'h50)+:(3)] == 6) & ~key[(64'h55)+:(1)]) begin
            own = (64'h1 << 6);
        end
        if ((key[(64'h50)+:(3)] == 7) & ~key[(64'h55)+:(1)]) begin
            own = (64'h1 << 7);
        end
        empty = ~entry[(64'h0)+:(1)] & ~entry[(64'h1)+:(1)];
        weighed$d[(64'h0)+:(1)] = ((entry[(64'h1)+:(1)] & relation[(64'h2)+:(1)]) | (empty & relation[(64'h3)+:(1)])) & has_place;
        weighed$d[(64'h1)+:(1)] = |(participants & own);
        held_members$d = own;
        old_total = 32'h0;
        if (entry[(64'h0)+:(1)]) begin
            held_members$d = own | entry[(64'h2c)+:(8)];
            old_total = ((entry[(64'h34)+:(16)]) & 17'h1ffff);
        end
        if (key[(64'h57)+:(1)]) begin
            old_total = ((entry[(64'h46)+:(16)]) & 17'h1ffff);
            if (relation[(64'h0)+:(1)]) begin
                old_total = ((entry[(64'h34)+:(16)]) & 17'h1ffff);
            end
        end
        held_bank$d = entry[(64'h44)+:(1)] ^ ~relation[(64'h0)+:(1)];
        held_has_previous$d = entry[(64'h1)+:(1)];
        held_previous_total$d = entry[(64'h34)+:(16)];
        if (entry[(64'h0)+:(1)]) begin
            held_has_previous$d = entry[(64'h45)+:(1)];
            held_previous_total$d = entry[(64'h46)+:(16)];
        end
        new_total = old_total + ((key[(64'h30)+:(16)]) & 17'h1ffff);
        held_total$d = new_total[(32'h0)+:(16)];
        weighed$d[(64'h2)+:(1)] = entry[(64'h0)+:(1)] & |(entry[(64'h2c)+:(8)] & own);
        weighed$d[(64'h3)+:(1)] = new_total[32'h10] | &new_total[(32'h0)+:(16)];
        if (~|(switches & own) & (key[(64'h30)+:(16)] != 32'h1)) begin
            weighed$d[(64'h3)+:(1)] = 1'b1;
        end
        weighed$d[(64'h5)+:(1)] = (entry[(64'h1)+:(1)] & relation[(64'h0)+:(1)]) | (~empty & entry[(64'h45)+:(1)] & relation[(64'h5)+:(1)]);
        weighed$d[(64'h4)+:(1)] = (~empty & relation[(64'h1)+:(1)]) | (empty & relation[(64'h4)+:(1)]);
        weighed$d[(64'h7)+:(1)] = is_past & key[(64'h56)+:(1)];
        weighed$d[(64'h6)+:(1)] = entry[(64'h0)+:(1)] & relation[(64'h0)+:(1)];
        count$bits = held_members$q & participants;
        ones = count$count;
        enough = 1'b0;
        needs$0 = ~|needed;
        needs_most$0 = needs$0;
        needs$1 = needed == 1;
        needs_most$1 = needs_most$0 | needs$1;
        if ((ones == 1) & needs_most$1) begin
            enough = 1'b1;
        end
        needs$2 = needed == 2;
        needs_most$2 = needs_most$1 | needs$2;
        if ((ones == 2) & needs_most$2) begin
            enough = 1'b1;
        end
        needs$3 = needed == 3;
        needs_most$3 = needs_most$2 | needs$3;
        if ((ones == 3) & needs_most$3) begin
            enough = 1'b1;
        end
        needs$4 = needed == 4;
        needs_most$4 = needs_most$3 | needs$4;
        if ((ones == 4) & needs_most$4) begin
            enough = 1'b1;
        end
        needs$5 = needed == 5;
        needs_most$5 = needs_most$4 | needs$5;
        if ((ones == 5) & needs_most$5) begin
            enough = 1'b1;
        end
        needs$6 = needed == 6;
        needs_most$6 = needs_most$5 | needs$6;
        if ((ones == 6) & needs_most$6) begin
            enough = 1'b1;
        end
        needs$7 = needed == 7;
        needs_most$7 = needs_most$6 | needs$7;
        if ((ones == 7) & needs_most$7) begin
            enough = 1'b1;
        end
        needs$8 = needed == 8;
        needs_most$8 = needs_most$7 | needs$8;
        if ((ones == 8) & needs_most$8) begin
            enough = 1'b1;
        end
        fails$d = 1'b1;
        is_late$d = 1'b0;
        code$d = 32'he;
        if (~key[(64'h53)+:(1)]) begin
            code$d = 32'h5;
        end
        else if (key[(64'h54)+:(1)]) begin
            code$d = 32'h6;
        end
        else if (halted) begin
            code$d = 32'h7;
        end
        else if (out_of_range) begin
            code$d = 32'h8;
        end
        else if (wrong_length) begin
            code$d = 32'h9;
        end
        else if (weighed$q[(64'h5)+:(1)]) begin
            code$d = 32'hc;
            is_late$d = 1'b1;
        end
        else if (weighed$q[(64'h4)+:(1)]) begin
            code$d = 32'hd;
        end
        else if (weighed$q[(64'h6)+:(1)] | weighed$q[(64'h0)+:(1)]) begin
            code$d = 32'h2;
            fails$d = 1'b0;
            if (~weighed$q[(64'h1)+:(1)]) begin
                code$d = 32'hf;
                fails$d = 1'b1;
            end
            else if (weighed$q[(64'h2)+:(1)]) begin
                code$d = 32'hb;
                fails$d = 1'b1;
            end
            else if (weighed$q[(64'h3)+:(1)]) begin
                code$d = 32'ha;
                fails$d = 1'b1;
            end
            else if (enough) begin
                code$d = 32'h3;
            end
        end
        is_last$d = enough;
        closes = weighed$q[(64'h6)+:(1)] & ~out_of_range & (enough | ~key[(64'h56)+:(1)]);
        if (key[(64'h55)+:(1)]) begin
            code$d = 32'h4;
            fails$d = ~closes;
            is_last$d = 1'b1;
            is_late$d = 1'b0;
        end
        if (key[(64'h57)+:(1)]) begin
            code$d = 32'h11;
            fails$d = 1'b1;
            if (weighed$q[(64'h5)+:(1)] & ~weighed$q[(64'h7)+:(1)] & ~halted) begin
                code$d = 32'h10;
                fails$d = 1'b0;
            end
        end
        event_code = code$q;
        accept = ~fails$q;
        last = is_last$q;
        first = ~weighed$q[(64'h6)+:(1)] & ~key[(64'h57)+:(1)];
        late = is_late$q;
        members = held_members$q;
        total = held_total$q;
        bank = held_bank$q;
        has_previous = held_has_previous$q;
        previous_total = held_previous_total$q;
    end
endmodule // iswitch_accel$datapath$counter$lookup$verdict
module iswitch_accel$datapath$counter$lookup$verdict$code(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$verdict$code
module iswitch_accel$datapath$counter$lookup$verdict$count(bits,count);
    // Module arguments
    input wire  [7:0] bits;
    output reg  [3:0] count;
    // Local signals
    reg  one$0;
    reg  one$1;
    reg  one$2;
    reg  two$0;
    reg  two$1;
    reg  two$2;
    reg  two$3;
    reg  two$4;
    reg  four$0;
    reg  four$1;
    reg  [3:0] number$0;
    reg  [3:0] number$1;
    reg  [3:0] number$2;
    reg  [3:0] number$3;
    // Update code
    always @(*) begin
        one$0 = bits[32'h3 * 0] ^ bits[32'h3 * 0 + 32'h1] ^ bits[32'h3 * 0 + 32'h2];
        two$0 = (bits[32'h3 * 0] & bits[32'h3 * 0 + 32'h1]) | (bits[32'h3 * 0] & bits[32'h3 * 0 + 32'h2]) | (bits[32'h3 * 0 + 32'h1] & bits[32'h3 * 0 + 32'h2]);
        one$1 = bits[32'h3 * 1] ^ bits[32'h3 * 1 + 32'h1] ^ bits[32'h3 * 1 + 32'h2];
        two$1 = (bits[32'h3 * 1] & bits[32'h3 * 1 + 32'h1]) | (bits[32'h3 * 1] & bits[32'h3 * 1 + 32'h2]) | (bits[32'h3 * 1 + 32'h1] & bits[32'h3 * 1 + 32'h2]);
        one$2 = bits[32'h6] ^ bits[32'h7];
        two$2 = bits[32'h6] & bits[32'h7];
        two$3 = (one$0 & one$1) | (one$0 & one$2) | (one$1 & one$2);
        two$4 = two$0 ^ two$1 ^ two$2;
        four$0 = (two$0 & two$1) | (two$0 & two$2) | (two$1 & two$2);
        four$1 = two$3 & two$4;
        number$0 = 32'h0;
        number$1 = 32'h0;
        number$2 = 32'h0;
        number$3 = 32'h0;
        if (one$0 ^ one$1 ^ one$2) begin
            number$0 = 32'h1;
        end
        if (two$3 ^ two$4) begin
            number$1 = 32'h2;
        end
        if (four$0 ^ four$1) begin
            number$2 = 32'h4;
        end
        if (four$0 & four$1) begin
            number$3 = 32'h8;
        end
        count = number$0 | number$1 | number$2 | number$3;
    end
endmodule // iswitch_accel$datapath$counter$lookup$verdict$count
module iswitch_accel$datapath$counter$lookup$verdict$fails(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$verdict$fails
module iswitch_accel$datapath$counter$lookup$verdict$held_bank(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$verdict$held_bank
module iswitch_accel$datapath$counter$lookup$verdict$held_has_previous(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$verdict$held_has_previous
module iswitch_accel$datapath$counter$lookup$verdict$held_members(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$verdict$held_members
module iswitch_accel$datapath$counter$lookup$verdict$held_previous_total(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$verdict$held_previous_total
module iswitch_accel$datapath$counter$lookup$verdict$held_total(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$verdict$held_total
module iswitch_accel$datapath$counter$lookup$verdict$is_last(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$verdict$is_last
module iswitch_accel$datapath$counter$lookup$verdict$is_late(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$verdict$is_late
module iswitch_accel$datapath$counter$lookup$verdict$weighed(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$lookup$verdict$weighed
module iswitch_accel$datapath$counter$reading(d,q,clock);
    // Module arguments
    input wire  [87:0] d;
    output reg  [87:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 88'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$reading
module iswitch_accel$datapath$counter$reads_ordinary(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$reads_ordinary
module iswitch_accel$datapath$counter$state(d,q,clock);
    // Module arguments
    input wire  [2:0] d;
    output reg  [2:0] q;
    input wire  clock;
    // Enums
    localparam CounterState$Weigh = 0;
    localparam CounterState$Read = 1;
    localparam CounterState$Compare = 2;
    localparam CounterState$Settle = 3;
    localparam CounterState$Clear = 4;
    // Update code (custom)
    initial begin
       q = 64'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$state
module iswitch_accel$datapath$counter$sweep(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$sweep
module iswitch_accel$datapath$counter$takes(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$counter$takes
module iswitch_accel$datapath$decisions(clock,reset,data_in,push,data_out,valid,empty,pop,room);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [33:0] data_in;
    input wire  push;
    output reg  [33:0] data_out;
    output reg  valid;
    output reg  empty;
    input wire  pop;
    output reg  room;
    // Constant declarations
    localparam  limit = 8'hc;
    // Stub signals
    reg  ram$clock;
    reg  [3:0] ram$write_address;
    reg  [33:0] ram$write_data;
    reg  ram$write_enable;
    reg  [3:0] ram$read_address;
    wire  [33:0] ram$read_data;
    reg  [3:0] write_at$d;
    wire  [3:0] write_at$q;
    reg  write_at$clock;
    reg  [3:0] read_at$d;
    wire  [3:0] read_at$q;
    reg  read_at$clock;
    reg  [7:0] count$d;
    wire  [7:0] count$q;
    reg  count$clock;
    reg  filled$d;
    wire  filled$q;
    reg  filled$clock;
    reg  is_empty$d;
    wire  is_empty$q;
    reg  is_empty$clock;
    reg  has_room$d;
    wire  has_room$q;
    reg  has_room$clock;
    // Local signals
    reg  [7:0] next_count;
    // Sub module instances
    iswitch_accel$datapath$decisions$ram ram(
        .clock(ram$clock),
        .write_address(ram$write_address),
        .write_data(ram$write_data),
        .write_enable(ram$write_enable),
        .read_address(ram$read_address),
        .read_data(ram$read_data)
    );
    iswitch_accel$datapath$decisions$write_at write_at(
        .d(write_at$d),
        .q(write_at$q),
        .clock(write_at$clock)
    );
    iswitch_accel$datapath$decisions$read_at read_at(
        .d(read_at$d),
        .q(read_at$q),
        .clock(read_at$clock)
    );
    iswitch_accel$datapath$decisions$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );
    iswitch_accel$datapath$decisions$filled filled(
        .d(filled$d),
        .q(filled$q),
        .clock(filled$clock)
    );
    iswitch_accel$datapath$decisions$is_empty is_empty(
        .d(is_empty$d),
        .q(is_empty$q),
        .clock(is_empty$clock)
    );
    iswitch_accel$datapath$decisions$has_room has_room(
        .d(has_room$d),
        .q(has_room$q),
        .clock(has_room$clock)
    );
    // Update code
    always @(*) begin
        write_at$clock = clock;
        read_at$clock = clock;
        count$clock = clock;
        filled$clock = clock;
        is_empty$clock = clock;
        has_room$clock = clock;
        write_at$d = write_at$q;
        read_at$d = read_at$q;
        count$d = count$q;
        filled$d = filled$q;
        is_empty$d = is_empty$q;
        has_room$d = has_room$q;
        ram$clock = clock;
        ram$write_address = write_at$q;
        ram$write_data = data_in;
        ram$write_enable = push;
        ram$read_address = read_at$q;
        data_out = ram$read_data;
        valid = filled$q;
        empty = is_empty$q;
        room = has_room$q;
        next_count = count$q + 32'h1;
        if (pop) begin
            next_count = count$q - 32'h1;
        end
        if (push) begin
            write_at$d = write_at$q + 32'h1;
        end
        if (pop) begin
            read_at$d = read_at$q + 32'h1;
        end
        if (push ^ pop) begin
            count$d = next_count;
        end
        if (pop) begin
            filled$d = count$q != 32'h1;
            is_empty$d = count$q == 32'h1;
        end
        if (push) begin
            filled$d = 1'b1;
            is_empty$d = 1'b0;
        end
        has_room$d = count$q < limit;
        if (reset) begin
            write_at$d = 32'h0;
            read_at$d = 32'h0;
            count$d = 32'h0;
            filled$d = 1'b0;
            is_empty$d = 1'b1;
            has_room$d = 1'b0;
        end
    end
endmodule // iswitch_accel$datapath$decisions
module iswitch_accel$datapath$decisions$count(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$decisions$count
module iswitch_accel$datapath$decisions$filled(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$decisions$filled
module iswitch_accel$datapath$decisions$has_room(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$decisions$has_room
module iswitch_accel$datapath$decisions$is_empty(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$decisions$is_empty
module iswitch_accel$datapath$decisions$ram(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [3:0] write_address;
    input wire  [33:0] write_data;
    input wire  write_enable;
    input wire  [3:0] read_address;
    output reg  [33:0] read_data;
    // Update code (custom)
    (* ram_style = "distributed" *) reg [33:0] words[15:0];
    integer i;
    initial for (i = 0; i <= 15; i = i + 1) words[i] = 0;
    always @(posedge clock) if (write_enable) words[write_address] <= write_data;
    always @(*) read_data = words[read_address];
endmodule // iswitch_accel$datapath$decisions$ram
module iswitch_accel$datapath$decisions$read_at(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$decisions$read_at
module iswitch_accel$datapath$decisions$write_at(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$decisions$write_at
module iswitch_accel$datapath$ingress(clock,reset,filter,set_member,word,data,members,ports,switches,asker,asker_port,flit,valid,ready,header,header_valid,no_header,header_pop,oldest,oldest_valid,no_oldest,pop);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [65:0] filter;
    input wire  set_member;
    input wire  [3:0] word;
    input wire  [31:0] data;
    output reg  [7:0] members;
    output reg  [7:0] ports;
    output reg  [7:0] switches;
    input wire  [2:0] asker;
    output reg  [7:0] asker_port;
    input wire  [416:0] flit;
    input wire  valid;
    output reg  ready;
    output reg  [102:0] header;
    output reg  header_valid;
    output reg  no_header;
    input wire  header_pop;
    output reg  [416:0] oldest;
    output reg  oldest_valid;
    output reg  no_oldest;
    input wire  pop;
    // Stub signals
    reg  beats$clock;
    reg  beats$reset;
    reg  [416:0] beats$data_in;
    reg  beats$push;
    wire  [416:0] beats$data_out;
    wire  beats$valid;
    wire  beats$empty;
    reg  beats$pop;
    wire  beats$room;
    reg  lasts$clock;
    reg  lasts$reset;
    reg  lasts$data_in;
    reg  lasts$push;
    wire  lasts$data_out;
    wire  lasts$valid;
    wire  lasts$empty;
    reg  lasts$pop;
    wire  lasts$room;
    reg  headers$clock;
    reg  headers$reset;
    reg  [102:0] headers$data_in;
    reg  headers$push;
    wire  [102:0] headers$data_out;
    wire  headers$valid;
    wire  headers$empty;
    reg  headers$pop;
    wire  headers$room;
    reg  capture$clock;
    reg  capture$reset;
    reg  [416:0] capture$flit;
    reg  capture$accept;
    wire  [288:0] capture$raw;
    wire  capture$valid;
    wire  capture$whole;
    wire  capture$short;
    reg  classifier$clock;
    reg  classifier$reset;
    reg  [65:0] classifier$filter;
    reg  [288:0] classifier$raw;
    reg  classifier$valid;
    reg  classifier$whole;
    reg  classifier$short;
    reg  classifier$known;
    reg  [2:0] classifier$member;
    wire  [102:0] classifier$header;
    wire  classifier$push;
    reg  member_table$clock;
    reg  member_table$reset;
    reg  member_table$write;
    reg  [2:0] member_table$row;
    reg  member_table$writes_port;
    reg  [31:0] member_table$data;
    reg  [15:0] member_table$address0;
    reg  [15:0] member_table$address1;
    reg  [15:0] member_table$port;
    wire  member_table$known;
    wire  [2:0] member_table$member;
    wire  [7:0] member_table$members;
    wire  [7:0] member_table$switches;
    wire  [7:0] member_table$all_ports;
    reg  [2:0] member_table$asker;
    wire  [7:0] member_table$asker_port;
    reg  open$d;
    wire  open$q;
    reg  open$clock;
    reg  shut$d;
    wire  shut$q;
    reg  shut$clock;
    // Local signals
    reg  accept;
    // Sub module instances
    iswitch_accel$datapath$ingress$beats beats(
        .clock(beats$clock),
        .reset(beats$reset),
        .data_in(beats$data_in),
        .push(beats$push),
        .data_out(beats$data_out),
        .valid(beats$valid),
        .empty(beats$empty),
        .pop(beats$pop),
        .room(beats$room)
    );
    iswitch_accel$datapath$ingress$lasts lasts(
        .clock(lasts$clock),
        .reset(lasts$reset),
        .data_in(lasts$data_in),
        .push(lasts$push),
        .data_out(lasts$data_out),
        .valid(lasts$valid),
        .empty(lasts$empty),
        .pop(lasts$pop),
        .room(lasts$room)
    );
    iswitch_accel$datapath$ingress$headers headers(
        .clock(headers$clock),
        .reset(headers$reset),
        .data_in(headers$data_in),
        .push(headers$push),
        .data_out(headers$data_out),
        .valid(headers$valid),
        .empty(headers$empty),
        .pop(headers$pop),
        .room(headers$room)
    );
    iswitch_accel$datapath$ingress$capture capture(
        .clock(capture$clock),
        .reset(capture$reset),
        .flit(capture$flit),
        .accept(capture$accept),
        .raw(capture$raw),
        .valid(capture$valid),
        .whole(capture$whole),
        .short(capture$short)
    );
    iswitch_accel$datapath$ingress$classifier classifier(
        .clock(classifier$clock),
        .reset(classifier$reset),
        .filter(classifier$filter),
        .raw(classifier$raw),
        .valid(classifier$valid),
        .whole(classifier$whole),
        .short(classifier$short),
        .known(classifier$known),
        .member(classifier$member),
        .header(classifier$header),
        .push(classifier$push)
    );
    iswitch_accel$datapath$ingress$member_table member_table(
        .clock(member_table$clock),
        .reset(member_table$reset),
        .write(member_table$write),
        .row(member_table$row),
        .writes_port(member_table$writes_port),
        .data(member_table$data),
        .address0(member_table$address0),
        .address1(member_table$address1),
        .port(member_table$port),
        .known(member_table$known),
        .member(member_table$member),
        .members(member_table$members),
        .switches(member_table$switches),
        .all_ports(member_table$all_ports),
        .asker(member_table$asker),
        .asker_port(member_table$asker_port)
    );
    iswitch_accel$datapath$ingress$open open(
        .d(open$d),
        .q(open$q),
        .clock(open$clock)
    );
    iswitch_accel$datapath$ingress$shut shut(
        .d(shut$d),
        .q(shut$q),
        .clock(shut$clock)
    );
    // Update code
    always @(*) begin
        open$clock = clock;
        shut$clock = clock;
        open$d = open$q;
        shut$d = shut$q;
        beats$clock = clock;
        lasts$clock = clock;
        headers$clock = clock;
        capture$clock = clock;
        classifier$clock = clock;
        member_table$clock = clock;
        beats$reset = reset;
        lasts$reset = reset;
        headers$reset = reset;
        capture$reset = reset;
        classifier$reset = reset;
        member_table$reset = reset;
        open$d = beats$room & headers$room & ~reset;
        shut$d = ~(beats$room & headers$room) | reset;
        ready = open$q;
        accept = valid & open$q;
        beats$data_in = flit;
        beats$push = accept;
        beats$pop = pop;
        lasts$data_in = flit[(64'h1a0)+:(1)];
        lasts$push = accept;
        lasts$pop = pop;
        oldest = beats$data_out;
        oldest[(64'h1a0)+:(1)] = lasts$data_out;
        oldest_valid = beats$valid;
        no_oldest = beats$empty;
        capture$flit = flit;
        capture$accept = valid & ~shut$q;
        member_table$write = set_member;
        member_table$row = word[(32'h1)+:(3)];
        member_table$writes_port = word[32'h0];
        member_table$data = data;
        member_table$address0 = capture$raw[(64'h50)+:(16)];
        member_table$address1 = capture$raw[(64'h60)+:(16)];
        member_table$port = capture$raw[(64'ha0)+:(16)];
        members = member_table$members;
        ports = member_table$all_ports;
        switches = member_table$switches;
        member_table$asker = asker;
        asker_port = member_table$asker_port;
        classifier$filter = filter;
        classifier$raw = capture$raw;
        classifier$valid = capture$valid;
        classifier$whole = capture$whole;
        classifier$short = capture$short;
        classifier$known = member_table$known;
        classifier$member = member_table$member;
        headers$data_in = classifier$header;
        headers$push = classifier$push;
        headers$pop = header_pop;
        header = headers$data_out;
        header_valid = headers$valid;
        no_header = headers$empty;
    end
endmodule // iswitch_accel$datapath$ingress
module iswitch_accel$datapath$ingress$beats(clock,reset,data_in,push,data_out,valid,empty,pop,room);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [416:0] data_in;
    input wire  push;
    output reg  [416:0] data_out;
    output reg  valid;
    output reg  empty;
    input wire  pop;
    output reg  room;
    // Constant declarations
    localparam  limit = 8'h3d;
    // Stub signals
    reg  ram$clock;
    reg  [5:0] ram$write_address;
    reg  [416:0] ram$write_data;
    reg  ram$write_enable;
    reg  [5:0] ram$read_address;
    wire  [416:0] ram$read_data;
    reg  [5:0] write_at$d;
    wire  [5:0] write_at$q;
    reg  write_at$clock;
    reg  [5:0] read_at$d;
    wire  [5:0] read_at$q;
    reg  read_at$clock;
    reg  [7:0] count$d;
    wire  [7:0] count$q;
    reg  count$clock;
    reg  filled$d;
    wire  filled$q;
    reg  filled$clock;
    reg  is_empty$d;
    wire  is_empty$q;
    reg  is_empty$clock;
    reg  has_room$d;
    wire  has_room$q;
    reg  has_room$clock;
    // Local signals
    reg  [7:0] next_count;
    // Sub module instances
    iswitch_accel$datapath$ingress$beats$ram ram(
        .clock(ram$clock),
        .write_address(ram$write_address),
        .write_data(ram$write_data),
        .write_enable(ram$write_enable),
        .read_address(ram$read_address),
        .read_data(ram$read_data)
    );
    iswitch_accel$datapath$ingress$beats$write_at write_at(
        .d(write_at$d),
        .q(write_at$q),
        .clock(write_at$clock)
    );
    iswitch_accel$datapath$ingress$beats$read_at read_at(
        .d(read_at$d),
        .q(read_at$q),
        .clock(read_at$clock)
    );
    iswitch_accel$datapath$ingress$beats$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );
    iswitch_accel$datapath$ingress$beats$filled filled(
        .d(filled$d),
        .q(filled$q),
        .clock(filled$clock)
    );
    iswitch_accel$datapath$ingress$beats$is_empty is_empty(
        .d(is_empty$d),
        .q(is_empty$q),
        .clock(is_empty$clock)
    );
    iswitch_accel$datapath$ingress$beats$has_room has_room(
        .d(has_room$d),
        .q(has_room$q),
        .clock(has_room$clock)
    );
    // Update code
    always @(*) begin
        write_at$clock = clock;
        read_at$clock = clock;
        count$clock = clock;
        filled$clock = clock;
        is_empty$clock = clock;
        has_room$clock = clock;
        write_at$d = write_at$q;
        read_at$d = read_at$q;
        count$d = count$q;
        filled$d = filled$q;
        is_empty$d = is_empty$q;
        has_room$d = has_room$q;
        ram$clock = clock;
        ram$write_address = write_at$q;
        ram$write_data = data_in;
        ram$write_enable = push;
        ram$read_address = read_at$q;
        data_out = ram$read_data;
        valid = filled$q;
        empty = is_empty$q;
        room = has_room$q;
        next_count = count$q + 32'h1;
        if (pop) begin
            next_count = count$q - 32'h1;
        end
        if (push) begin
            write_at$d = write_at$q + 32'h1;
        end
        if (pop) begin
            read_at$d = read_at$q + 32'h1;
        end
        if (push ^ pop) begin
            count$d = next_count;
        end
        if (pop) begin
            filled$d = count$q != 32'h1;
            is_empty$d = count$q == 32'h1;
        end
        if (push) begin
            filled$d = 1'b1;
            is_empty$d = 1'b0;
        end
        has_room$d = count$q < limit;
        if (reset) begin
            write_at$d = 32'h0;
            read_at$d = 32'h0;
            count$d = 32'h0;
            filled$d = 1'b0;
            is_empty$d = 1'b1;
            has_room$d = 1'b0;
        end
    end
endmodule // iswitch_accel$datapath$ingress$beats
module iswitch_accel$datapath$ingress$beats$count(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$beats$count
module iswitch_accel$datapath$ingress$beats$filled(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$beats$filled
module iswitch_accel$datapath$ingress$beats$has_room(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$beats$has_room
module iswitch_accel$datapath$ingress$beats$is_empty(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$beats$is_empty
module iswitch_accel$datapath$ingress$beats$ram(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [5:0] write_address;
    input wire  [416:0] write_data;
    input wire  write_enable;
    input wire  [5:0] read_address;
    output reg  [416:0] read_data;
    // Update code (custom)
    (* ram_style = "distributed" *) reg [416:0] words[63:0];
    integer i;
    initial for (i = 0; i <= 63; i = i + 1) words[i] = 0;
    always @(posedge clock) if (write_enable) words[write_address] <= write_data;
    always @(*) read_data = words[read_address];
endmodule // iswitch_accel$datapath$ingress$beats$ram
module iswitch_accel$datapath$ingress$beats$read_at(d,q,clock);
    // Module arguments
    input wire  [5:0] d;
    output reg  [5:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 6'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$beats$read_at
module iswitch_accel$datapath$ingress$beats$write_at(d,q,clock);
    // Module arguments
    input wire  [5:0] d;
    output reg  [5:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 6'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$beats$write_at
module iswitch_accel$datapath$ingress$capture(clock,reset,flit,accept,raw,valid,whole,short);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [416:0] flit;
    input wire  accept;
    output reg  [288:0] raw;
    output reg  valid;
    output reg  whole;
    output reg  short;
    // Stub signals
    reg  [1:0] beat$d;
    wire  [1:0] beat$q;
    reg  beat$clock;
    reg  [288:0] held$d;
    wire  [288:0] held$q;
    reg  held$clock;
    reg  complete$d;
    wire  complete$q;
    reg  complete$clock;
    reg  [10:0] left$d;
    wire  [10:0] left$q;
    reg  left$clock;
    reg  [4:0] rest$d;
    wire  [4:0] rest$q;
    reg  rest$clock;
    reg  ends$d;
    wire  ends$q;
    reg  ends$clock;
    reg  lacks$d;
    wire  lacks$q;
    reg  lacks$clock;
    // Local signals
    reg  [15:0] before_last;
    reg  [31:0] from_rest;
    reg  is_full;
    reg  arrives;
    reg  [255:0] data;
    reg  [127:0] user;
    reg  [63:0] seg;
    // Sub module instances
    iswitch_accel$datapath$ingress$capture$beat beat(
        .d(beat$d),
        .q(beat$q),
        .clock(beat$clock)
    );
    iswitch_accel$datapath$ingress$capture$held held(
        .d(held$d),
        .q(held$q),
        .clock(held$clock)
    );
    iswitch_accel$datapath$ingress$capture$complete complete(
        .d(complete$d),
        .q(complete$q),
        .clock(complete$clock)
    );
    iswitch_accel$datapath$ingress$capture$left left(
        .d(left$d),
        .q(left$q),
        .clock(left$clock)
    );
    iswitch_accel$datapath$ingress$capture$rest rest(
        .d(rest$d),
        .q(rest$q),
        .clock(rest$clock)
    );
    iswitch_accel$datapath$ingress$capture$ends ends(
        .d(ends$d),
        .q(ends$q),
        .clock(ends$clock)
    );
    iswitch_accel$datapath$ingress$capture$lacks lacks(
        .d(lacks$d),
        .q(lacks$q),
        .clock(lacks$clock)
    );
    // Update code
    always @(*) begin
        beat$clock = clock;
        held$clock = clock;
        complete$clock = clock;
        left$clock = clock;
        rest$clock = clock;
        ends$clock = clock;
        lacks$clock = clock;
        beat$d = beat$q;
        held$d = held$q;
        complete$d = complete$q;
        left$d = left$q;
        rest$d = rest$q;
        ends$d = ends$q;
        lacks$d = lacks$q;
        data = flit[(64'h0)+:(256)];
        user = flit[(64'h120)+:(128)];
        seg[(64'h0)+:(16)] = data[(64'h50)+:(16)];
        seg[(64'h10)+:(16)] = data[(64'h60)+:(16)];
        seg[(64'h20)+:(16)] = data[(64'h70)+:(16)];
        seg[(64'h30)+:(16)] = data[(64'h80)+:(16)];
        complete$d = 1'b0;
        if (accept & (beat$q == 32'h0)) begin
            beat$d = 32'h1;
            complete$d = flit[(64'h1a0)+:(1)];
        end
        if (beat$q == 32'h0) begin
            held$d[(64'h120)+:(1)] = flit[(64'h1a0)+:(1)];
            held$d[(64'h0)+:(16)] = data[(64'h60)+:(16)];
            held$d[(64'h10)+:(16)] = data[(64'h70)+:(16)];
            held$d[(64'h20)+:(16)] = data[(64'h80)+:(16)];
            held$d[(64'h30)+:(16)] = data[(64'ha0)+:(16)];
            held$d[(64'h40)+:(16)] = data[(64'hb0)+:(16)];
            held$d[(64'h50)+:(16)] = data[(64'hd0)+:(16)];
            held$d[(64'h60)+:(16)] = data[(64'he0)+:(16)];
            held$d[(64'h70)+:(16)] = user[(64'h0)+:(16)];
            held$d[(64'h80)+:(16)] = data[(64'hf0)+:(16)];
        end
        if (accept & (beat$q == 32'h1)) begin
            beat$d = 32'h2;
            complete$d = 1'b1;
        end
        if (beat$q == 32'h1) begin
            held$d[(64'h90)+:(16)] = data[(64'h0)+:(16)];
            held$d[(64'ha0)+:(16)] = data[(64'h10)+:(16)];
            held$d[(64'hb0)+:(16)] = data[(64'h20)+:(16)];
            held$d[(64'hc0)+:(16)] = data[(64'h30)+:(16)];
            held$d[(64'hd0)+:(64)] = seg;
            held$d[(64'h110)+:(16)] = data[(64'hb0)+:(16)];
        end
        before_last = user[(64'h0)+:(16)] - 32'h1;
        from_rest = flit[(64'h100)+:(32)] >> ((rest$q) & 32'hffffffff);
        is_full = from_rest[32'h0] | ~flit[(64'h1a0)+:(1)];
        arrives = flit[(64'h1a0)+:(1)] | (left$q == 32'h1);
        ends$d = 1'b0;
        lacks$d = (left$q > 32'h1) | ~is_full;
        if (accept & |left$q) begin
            left$d = left$q - 32'h1;
        end
        if (beat$q == 32'h0) begin
            left$d = before_last[(32'h5)+:(11)];
            rest$d = before_last[(32'h0)+:(5)];
            ends$d = accept & flit[(64'h1a0)+:(1)];
        end
        if (accept & (beat$q == 32'h1)) begin
            ends$d = arrives | ~|left$q;
        end
        if (accept & beat$q[32'h1] & |left$q) begin
            ends$d = arrives;
        end
        if (accept & flit[(64'h1a0)+:(1)]) begin
            beat$d = 32'h0;
        end
        if (reset) begin
            beat$d = 32'h0;
            complete$d = 1'b0;
            ends$d = 1'b0;
        end
        whole = ends$q;
        short = lacks$q;
        raw = held$q;
        valid = complete$q;
    end
endmodule // iswitch_accel$datapath$ingress$capture
module iswitch_accel$datapath$ingress$capture$beat(d,q,clock);
    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 2'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$capture$beat
module iswitch_accel$datapath$ingress$capture$complete(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$capture$complete
module iswitch_accel$datapath$ingress$capture$ends(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$capture$ends
module iswitch_accel$datapath$ingress$capture$held(d,q,clock);
    // Module arguments
    input wire  [288:0] d;
    output reg  [288:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 289'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$capture$held
module iswitch_accel$datapath$ingress$capture$lacks(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$capture$lacks
module iswitch_accel$datapath$ingress$capture$left(d,q,clock);
    // Module arguments
    input wire  [10:0] d;
    output reg  [10:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 11'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$capture$left
module iswitch_accel$datapath$ingress$capture$rest(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$capture$rest
module iswitch_accel$datapath$ingress$classifier(clock,reset,filter,raw,valid,whole,short,known,member,header,push);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [65:0] filter;
    input wire  [288:0] raw;
    input wire  valid;
    input wire  whole;
    input wire  short;
    input wire  known;
    input wire  [2:0] member;
    output reg  [102:0] header;
    output reg  push;
    // Stub signals
    reg  [288:0] held$d;
    wire  [288:0] held$q;
    reg  held$clock;
    reg  [6:0] marks$d;
    wire  [6:0] marks$q;
    reg  marks$clock;
    reg  checked$d;
    wire  checked$q;
    reg  checked$clock;
    reg  arrived$d;
    wire  arrived$q;
    reg  arrived$clock;
    reg  was_short$d;
    wire  was_short$q;
    reg  was_short$clock;
    reg  waiting$d;
    wire  waiting$q;
    reg  waiting$clock;
    reg  [15:0] swapped$half;
    wire  [15:0] swapped$swapped;
    reg  [15:0] udp_swapped$half;
    wire  [15:0] udp_swapped$swapped;
    reg  [15:0] held_swapped$half;
    wire  [15:0] held_swapped$swapped;
    // Local signals
    reg  waits;
    reg  [15:0] ip_len;
    reg  [15:0] udp_len;
    reg  [15:0] version_tos;
    reg  [15:0] fragment;
    reg  [15:0] protocol;
    reg  [5:0] tos;
    reg  [7:0] data_byte;
    reg  [7:0] control_byte;
    reg  [16:0] with_ip;
    reg  [16:0] with_ethernet;
    reg  [16:0] wide_ip_len;
    reg  [16:0] frame_len;
    reg  ours;
    reg  is_data;
    reg  is_control;
    // Sub module instances
    iswitch_accel$datapath$ingress$classifier$held held(
        .d(held$d),
        .q(held$q),
        .clock(held$clock)
    );
    iswitch_accel$datapath$ingress$classifier$marks marks(
        .d(marks$d),
        .q(marks$q),
        .clock(marks$clock)
    );
    iswitch_accel$datapath$ingress$classifier$checked checked(
        .d(checked$d),
        .q(checked$q),
        .clock(checked$clock)
    );
    iswitch_accel$datapath$ingress$classifier$arrived arrived(
        .d(arrived$d),
        .q(arrived$q),
        .clock(arrived$clock)
    );
    iswitch_accel$datapath$ingress$classifier$was_short was_short(
        .d(was_short$d),
        .q(was_short$q),
        .clock(was_short$clock)
    );
    iswitch_accel$datapath$ingress$classifier$waiting waiting(
        .d(waiting$d),
        .q(waiting$q),
        .clock(waiting$clock)
    );
    iswitch_accel$datapath$ingress$classifier$swapped swapped(
        .half(swapped$half),
        .swapped(swapped$swapped)
    );
    iswitch_accel$datapath$ingress$classifier$udp_swapped udp_swapped(
        .half(udp_swapped$half),
        .swapped(udp_swapped$swapped)
    );
    iswitch_accel$datapath$ingress$classifier$held_swapped held_swapped(
        .half(held_swapped$half),
        .swapped(held_swapped$swapped)
    );
    // Update code
    always @(*) begin
        held$clock = clock;
        marks$clock = clock;
        checked$clock = clock;
        arrived$clock = clock;
        was_short$clock = clock;
        waiting$clock = clock;
        held$d = held$q;
        marks$d = marks$q;
        checked$d = checked$q;
        arrived$d = arrived$q;
        was_short$d = was_short$q;
        waiting$d = waiting$q;
        held$d = raw;
        checked$d = valid & ~reset;
        swapped$half = raw[(64'h20)+:(16)];
        udp_swapped$half = raw[(64'hc0)+:(16)];
        ip_len = swapped$swapped;
        udp_len = udp_swapped$swapped;
        version_tos = raw[(64'h10)+:(16)];
        protocol = raw[(64'h40)+:(16)];
        fragment = raw[(64'h30)+:(16)];
        tos = version_tos[(32'ha)+:(6)];
        data_byte = filter[(64'h2)+:(8)];
        control_byte = filter[(64'ha)+:(8)];
        wide_ip_len = ((ip_len) & 17'h1ffff);
        frame_len = ((raw[(64'h70)+:(16)]) & 17'h1ffff);
        with_ip = ((udp_len) & 17'h1ffff) + 32'h14;
        with_ethernet = wide_ip_len + 32'he;
        marks$d[(64'h0)+:(1)] = ~raw[(64'h120)+:(1)] & (raw[(64'h0)+:(16)] == 32'h8) & (version_tos[(32'h0)+:(8)] == 32'h45) & (protocol[(32'h8)+:(8)] == 32'h11);
        marks$d[(64'h1)+:(1)] = tos == data_byte[(32'h2)+:(6)];
        marks$d[(64'h2)+:(1)] = tos == control_byte[(32'h2)+:(6)];
        marks$d[(64'h3)+:(1)] = raw[(64'hb0)+:(16)] == filter[(64'h12)+:(16)];
        marks$d[(64'h4)+:(1)] = (raw[(64'h80)+:(16)] == filter[(64'h22)+:(16)]) & (raw[(64'h90)+:(16)] == filter[(64'h32)+:(16)]);
        marks$d[(64'h5)+:(1)] = |fragment[(32'h0)+:(6)] | |fragment[(32'h8)+:(8)];
        marks$d[(64'h6)+:(1)] = (with_ip == wide_ip_len) & (frame_len >= with_ethernet) & (frame_len <= 32'h600);
        ours = filter[(64'h0)+:(1)] & marks$q[(64'h0)+:(1)] & marks$q[(64'h4)+:(1)];
        is_data = ours & marks$q[(64'h1)+:(1)] & (marks$q[(64'h3)+:(1)] | marks$q[(64'h5)+:(1)]);
        is_control = ours & marks$q[(64'h2)+:(1)] & marks$q[(64'h3)+:(1)] & ~marks$q[(64'h5)+:(1)];
        header[(64'h0)+:(1)] = is_data & (known | ~filter[(64'h1)+:(1)]);
        header[(64'h1)+:(1)] = is_control;
        header[(64'h2)+:(1)] = marks$q[(64'h5)+:(1)] | ~marks$q[(64'h6)+:(1)] | was_short$q;
        header[(64'h3)+:(1)] = known;
        header[(64'h4)+:(3)] = member;
        header[(64'h7)+:(64)] = held$q[(64'hd0)+:(64)];
        held_swapped$half = held$q[(64'hc0)+:(16)];
        header[(64'h47)+:(16)] = held_swapped$swapped;
        header[(64'h57)+:(16)] = held$q[(64'h110)+:(16)];
        arrived$d = whole;
        was_short$d = short;
        waits = (is_data | is_control) & marks$q[(64'h6)+:(1)] & ~arrived$q;
        push = (checked$q & ~waits) | (waiting$q & arrived$q);
        waiting$d = (checked$q & waits) | (waiting$q & ~arrived$q);
        if (reset) begin
            waiting$d = 1'b0;
        end
    end
endmodule // iswitch_accel$datapath$ingress$classifier
module iswitch_accel$datapath$ingress$classifier$arrived(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$classifier$arrived
module iswitch_accel$datapath$ingress$classifier$checked(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$classifier$checked
module iswitch_accel$datapath$ingress$classifier$held(d,q,clock);
    // Module arguments
    input wire  [288:0] d;
    output reg  [288:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 289'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$classifier$held
module iswitch_accel$datapath$ingress$classifier$held_swapped(half,swapped);
    // Module arguments
    input wire  [15:0] half;
    output reg  [15:0] swapped;
    // Local signals
    reg  [15:0] low;
    reg  [15:0] high;
    // Update code
    always @(*) begin
        low = half >> 32'h8;
        high = half << 32'h8;
        swapped = low | high;
    end
endmodule // iswitch_accel$datapath$ingress$classifier$held_swapped
module iswitch_accel$datapath$ingress$classifier$marks(d,q,clock);
    // Module arguments
    input wire  [6:0] d;
    output reg  [6:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 7'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$classifier$marks
module iswitch_accel$datapath$ingress$classifier$swapped(half,swapped);
    // Module arguments
    input wire  [15:0] half;
    output reg  [15:0] swapped;
    // Local signals
    reg  [15:0] low;
    reg  [15:0] high;
    // Update code
    always @(*) begin
        low = half >> 32'h8;
        high = half << 32'h8;
        swapped = low | high;
    end
endmodule // iswitch_accel$datapath$ingress$classifier$swapped
module iswitch_accel$datapath$ingress$classifier$udp_swapped(half,swapped);
    // Module arguments
    input wire  [15:0] half;
    output reg  [15:0] swapped;
    // Local signals
    reg  [15:0] low;
    reg  [15:0] high;
    // Update code
    always @(*) begin
        low = half >> 32'h8;
        high = half << 32'h8;
        swapped = low | high;
    end
endmodule // iswitch_accel$datapath$ingress$classifier$udp_swapped
module iswitch_accel$datapath$ingress$classifier$waiting(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$classifier$waiting
module iswitch_accel$datapath$ingress$classifier$was_short(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$classifier$was_short
module iswitch_accel$datapath$ingress$headers(clock,reset,data_in,push,data_out,valid,empty,pop,room);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [102:0] data_in;
    input wire  push;
    output reg  [102:0] data_out;
    output reg  valid;
    output reg  empty;
    input wire  pop;
    output reg  room;
    // Constant declarations
    localparam  limit = 8'h8;
    // Stub signals
    reg  ram$clock;
    reg  [3:0] ram$write_address;
    reg  [102:0] ram$write_data;
    reg  ram$write_enable;
    reg  [3:0] ram$read_address;
    wire  [102:0] ram$read_data;
    reg  [3:0] write_at$d;
    wire  [3:0] write_at$q;
    reg  write_at$clock;
    reg  [3:0] read_at$d;
    wire  [3:0] read_at$q;
    reg  read_at$clock;
    reg  [7:0] count$d;
    wire  [7:0] count$q;
    reg  count$clock;
    reg  filled$d;
    wire  filled$q;
    reg  filled$clock;
    reg  is_empty$d;
    wire  is_empty$q;
    reg  is_empty$clock;
    reg  has_room$d;
    wire  has_room$q;
    reg  has_room$clock;
    // Local signals
    reg  [7:0] next_count;
    // Sub module instances
    iswitch_accel$datapath$ingress$headers$ram ram(
        .clock(ram$clock),
        .write_address(ram$write_address),
        .write_data(ram$write_data),
        .write_enable(ram$write_enable),
        .read_address(ram$read_address),
        .read_data(ram$read_data)
    );
    iswitch_accel$datapath$ingress$headers$write_at write_at(
        .d(write_at$d),
        .q(write_at$q),
        .clock(write_at$clock)
    );
    iswitch_accel$datapath$ingress$headers$read_at read_at(
        .d(read_at$d),
        .q(read_at$q),
        .clock(read_at$clock)
    );
    iswitch_accel$datapath$ingress$headers$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );
    iswitch_accel$datapath$ingress$headers$filled filled(
        .d(filled$d),
        .q(filled$q),
        .clock(filled$clock)
    );
    iswitch_accel$datapath$ingress$headers$is_empty is_empty(
        .d(is_empty$d),
        .q(is_empty$q),
        .clock(is_empty$clock)
    );
    iswitch_accel$datapath$ingress$headers$has_room has_room(
        .d(has_room$d),
        .q(has_room$q),
        .clock(has_room$clock)
    );
    // Update code
    always @(*) begin
        write_at$clock = clock;
        read_at$clock = clock;
        count$clock = clock;
        filled$clock = clock;
        is_empty$clock = clock;
        has_room$clock = clock;
        write_at$d = write_at$q;
        read_at$d = read_at$q;
        count$d = count$q;
        filled$d = filled$q;
        is_empty$d = is_empty$q;
        has_room$d = has_room$q;
        ram$clock = clock;
        ram$write_address = write_at$q;
        ram$write_data = data_in;
        ram$write_enable = push;
        ram$read_address = read_at$q;
        data_out = ram$read_data;
        valid = filled$q;
        empty = is_empty$q;
        room = has_room$q;
        next_count = count$q + 32'h1;
        if (pop) begin
            next_count = count$q - 32'h1;
        end
        if (push) begin
            write_at$d = write_at$q + 32'h1;
        end
        if (pop) begin
            read_at$d = read_at$q + 32'h1;
        end
        if (push ^ pop) begin
            count$d = next_count;
        end
        if (pop) begin
            filled$d = count$q != 32'h1;
            is_empty$d = count$q == 32'h1;
        end
        if (push) begin
            filled$d = 1'b1;
            is_empty$d = 1'b0;
        end
        has_room$d = count$q < limit;
        if (reset) begin
            write_at$d = 32'h0;
            read_at$d = 32'h0;
            count$d = 32'h0;
            filled$d = 1'b0;
            is_empty$d = 1'b1;
            has_room$d = 1'b0;
        end
    end
endmodule // iswitch_accel$datapath$ingress$headers
module iswitch_accel$datapath$ingress$headers$count(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$headers$count
module iswitch_accel$datapath$ingress$headers$filled(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$headers$filled
module iswitch_accel$datapath$ingress$headers$has_room(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$headers$has_room
module iswitch_accel$datapath$ingress$headers$is_empty(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$headers$is_empty
module iswitch_accel$datapath$ingress$headers$ram(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [3:0] write_address;
    input wire  [102:0] write_data;
    input wire  write_enable;
    input wire  [3:0] read_address;
    output reg  [102:0] read_data;
    // Update code (custom)
    (* ram_style = "distributed" *) reg [102:0] words[15:0];
    integer i;
    initial for (i = 0; i <= 15; i = i + 1) words[i] = 0;
    always @(posedge clock) if (write_enable) words[write_address] <= write_data;
    always @(*) read_data = words[read_address];
endmodule // iswitch_accel$datapath$ingress$headers$ram
module iswitch_accel$datapath$ingress$headers$read_at(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$headers$read_at
module iswitch_accel$datapath$ingress$headers$write_at(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$headers$write_at
module iswitch_accel$datapath$ingress$lasts(clock,reset,data_in,push,data_out,valid,empty,pop,room);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  data_in;
    input wire  push;
    output reg  data_out;
    output reg  valid;
    output reg  empty;
    input wire  pop;
    output reg  room;
    // Constant declarations
    localparam  limit = 8'h3d;
    // Stub signals
    reg  ram$clock;
    reg  [5:0] ram$write_address;
    reg  ram$write_data;
    reg  ram$write_enable;
    reg  [5:0] ram$read_address;
    wire  ram$read_data;
    reg  [5:0] write_at$d;
    wire  [5:0] write_at$q;
    reg  write_at$clock;
    reg  [5:0] read_at$d;
    wire  [5:0] read_at$q;
    reg  read_at$clock;
    reg  [7:0] count$d;
    wire  [7:0] count$q;
    reg  count$clock;
    reg  filled$d;
    wire  filled$q;
    reg  filled$clock;
    reg  is_empty$d;
    wire  is_empty$q;
    reg  is_empty$clock;
    reg  has_room$d;
    wire  has_room$q;
    reg  has_room$clock;
    // Local signals
    reg  [7:0] next_count;
    // Sub module instances
    iswitch_accel$datapath$ingress$lasts$ram ram(
        .clock(ram$clock),
        .write_address(ram$write_address),
        .write_data(ram$write_data),
        .write_enable(ram$write_enable),
        .read_address(ram$read_address),
        .read_data(ram$read_data)
    );
    iswitch_accel$datapath$ingress$lasts$write_at write_at(
        .d(write_at$d),
        .q(write_at$q),
        .clock(write_at$clock)
    );
    iswitch_accel$datapath$ingress$lasts$read_at read_at(
        .d(read_at$d),
        .q(read_at$q),
        .clock(read_at$clock)
    );
    iswitch_accel$datapath$ingress$lasts$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );
    iswitch_accel$datapath$ingress$lasts$filled filled(
        .d(filled$d),
        .q(filled$q),
        .clock(filled$clock)
    );
    iswitch_accel$datapath$ingress$lasts$is_empty is_empty(
        .d(is_empty$d),
        .q(is_empty$q),
        .clock(is_empty$clock)
    );
    iswitch_accel$datapath$ingress$lasts$has_room has_room(
        .d(has_room$d),
        .q(has_room$q),
        .clock(has_room$clock)
    );
    // Update code
    always @(*) begin
        write_at$clock = clock;
        read_at$clock = clock;
        count$clock = clock;
        filled$clock = clock;
        is_empty$clock = clock;
        has_room$clock = clock;
        write_at$d = write_at$q;
        read_at$d = read_at$q;
        count$d = count$q;
        filled$d = filled$q;
        is_empty$d = is_empty$q;
        has_room$d = has_room$q;
        ram$clock = clock;
        ram$write_address = write_at$q;
        ram$write_data = data_in;
        ram$write_enable = push;
        ram$read_address = read_at$q;
        data_out = ram$read_data;
        valid = filled$q;
        empty = is_empty$q;
        room = has_room$q;
        next_count = count$q + 32'h1;
        if (pop) begin
            next_count = count$q - 32'h1;
        end
        if (push) begin
            write_at$d = write_at$q + 32'h1;
        end
        if (pop) begin
            read_at$d = read_at$q + 32'h1;
        end
        if (push ^ pop) begin
            count$d = next_count;
        end
        if (pop) begin
            filled$d = count$q != 32'h1;
            is_empty$d = count$q == 32'h1;
        end
        if (push) begin
            filled$d = 1'b1;
            is_empty$d = 1'b0;
        end
        has_room$d = count$q < limit;
        if (reset) begin
            write_at$d = 32'h0;
            read_at$d = 32'h0;
            count$d = 32'h0;
            filled$d = 1'b0;
            is_empty$d = 1'b1;
            has_room$d = 1'b0;
        end
    end
endmodule // iswitch_accel$datapath$ingress$lasts
module iswitch_accel$datapath$ingress$lasts$count(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$lasts$count
module iswitch_accel$datapath$ingress$lasts$filled(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$lasts$filled
module iswitch_accel$datapath$ingress$lasts$has_room(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$lasts$has_room
module iswitch_accel$datapath$ingress$lasts$is_empty(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$lasts$is_empty
module iswitch_accel$datapath$ingress$lasts$ram(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [5:0] write_address;
    input wire  write_data;
    input wire  write_enable;
    input wire  [5:0] read_address;
    output reg  read_data;
    // Update code (custom)
    (* ram_style = "distributed" *) reg [0:0] words[63:0];
    integer i;
    initial for (i = 0; i <= 63; i = i + 1) words[i] = 0;
    always @(posedge clock) if (write_enable) words[write_address] <= write_data;
    always @(*) read_data = words[read_address];
endmodule // iswitch_accel$datapath$ingress$lasts$ram
module iswitch_accel$datapath$ingress$lasts$read_at(d,q,clock);
    // Module arguments
    input wire  [5:0] d;
    output reg  [5:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 6'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$lasts$read_at
module iswitch_accel$datapath$ingress$lasts$write_at(d,q,clock);
    // Module arguments
    input wire  [5:0] d;
    output reg  [5:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 6'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$lasts$write_at
module iswitch_accel$datapath$ingress$member_table(clock,reset,write,row,writes_port,data,address0,address1,port,known,member,members,switches,all_ports,asker,asker_port);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  write;
    input wire  [2:0] row;
    input wire  writes_port;
    input wire  [31:0] data;
    input wire  [15:0] address0;
    input wire  [15:0] address1;
    input wire  [15:0] port;
    output reg  known;
    output reg  [2:0] member;
    output reg  [7:0] members;
    output reg  [7:0] switches;
    output reg  [7:0] all_ports;
    input wire  [2:0] asker;
    output reg  [7:0] asker_port;
    // Stub signals
    reg  [15:0] address0s$0$d;
    wire  [15:0] address0s$0$q;
    reg  address0s$0$clock;
    reg  [15:0] address0s$1$d;
    wire  [15:0] address0s$1$q;
    reg  address0s$1$clock;
    reg  [15:0] address0s$2$d;
    wire  [15:0] address0s$2$q;
    reg  address0s$2$clock;
    reg  [15:0] address0s$3$d;
    wire  [15:0] address0s$3$q;
    reg  address0s$3$clock;
    reg  [15:0] address0s$4$d;
    wire  [15:0] address0s$4$q;
    reg  address0s$4$clock;
    reg  [15:0] address0s$5$d;
    wire  [15:0] address0s$5$q;
    reg  address0s$5$clock;
    reg  [15:0] address0s$6$d;
    wire  [15:0] address0s$6$q;
    reg  address0s$6$clock;
    reg  [15:0] address0s$7$d;
    wire  [15:0] address0s$7$q;
    reg  address0s$7$clock;
    reg  [15:0] address1s$0$d;
    wire  [15:0] address1s$0$q;
    reg  address1s$0$clock;
    reg  [15:0] address1s$1$d;
    wire  [15:0] address1s$1$q;
    reg  address1s$1$clock;
    reg  [15:0] address1s$2$d;
    wire  [15:0] address1s$2$q;
    reg  address1s$2$clock;
    reg  [15:0] address1s$3$d;
    wire  [15:0] address1s$3$q;
    reg  address1s$3$clock;
    reg  [15:0] address1s$4$d;
    wire  [15:0] address1s$4$q;
    reg  address1s$4$clock;
    reg  [15:0] address1s$5$d;
    wire  [15:0] address1s$5$q;
    reg  address1s$5$clock;
    reg  [15:0] address1s$6$d;
    wire  [15:0] address1s$6$q;
    reg  address1s$6$clock;
    reg  [15:0] address1s$7$d;
    wire  [15:0] address1s$7$q;
    reg  address1s$7$clock;
    reg  [15:0] ports$0$d;
    wire  [15:0] ports$0$q;
    reg  ports$0$clock;
    reg  [15:0] ports$1$d;
    wire  [15:0] ports$1$q;
    reg  ports$1$clock;
    reg  [15:0] ports$2$d;
    wire  [15:0] ports$2$q;
    reg  ports$2$clock;
    reg  [15:0] ports$3$d;
    wire  [15:0] ports$3$q;
    reg  ports$3$clock;
    reg  [15:0] ports$4$d;
    wire  [15:0] ports$4$q;
    reg  ports$4$clock;
    reg  [15:0] ports$5$d;
    wire  [15:0] ports$5$q;
    reg  ports$5$clock;
    reg  [15:0] ports$6$d;
    wire  [15:0] ports$6$q;
    reg  ports$6$clock;
    reg  [15:0] ports$7$d;
    wire  [15:0] ports$7$q;
    reg  ports$7$clock;
    reg  [7:0] board_ports$0$d;
    wire  [7:0] board_ports$0$q;
    reg  board_ports$0$clock;
    reg  [7:0] board_ports$1$d;
    wire  [7:0] board_ports$1$q;
    reg  board_ports$1$clock;
    reg  [7:0] board_ports$2$d;
    wire  [7:0] board_ports$2$q;
    reg  board_ports$2$clock;
    reg  [7:0] board_ports$3$d;
    wire  [7:0] board_ports$3$q;
    reg  board_ports$3$clock;
    reg  [7:0] board_ports$4$d;
    wire  [7:0] board_ports$4$q;
    reg  board_ports$4$clock;
    reg  [7:0] board_ports$5$d;
    wire  [7:0] board_ports$5$q;
    reg  board_ports$5$clock;
    reg  [7:0] board_ports$6$d;
    wire  [7:0] board_ports$6$q;
    reg  board_ports$6$clock;
    reg  [7:0] board_ports$7$d;
    wire  [7:0] board_ports$7$q;
    reg  board_ports$7$clock;
    reg  [7:0] collected$d;
    wire  [7:0] collected$q;
    reg  collected$clock;
    reg  [7:0] chosen_port$d;
    wire  [7:0] chosen_port$q;
    reg  chosen_port$clock;
    reg  [7:0] valid$d;
    wire  [7:0] valid$q;
    reg  valid$clock;
    reg  [7:0] is_switch$d;
    wire  [7:0] is_switch$q;
    reg  is_switch$clock;
    reg  equal$0$d;
    wire  equal$0$q;
    reg  equal$0$clock;
    reg  equal$1$d;
    wire  equal$1$q;
    reg  equal$1$clock;
    reg  equal$2$d;
    wire  equal$2$q;
    reg  equal$2$clock;
    reg  equal$3$d;
    wire  equal$3$q;
    reg  equal$3$clock;
    reg  equal$4$d;
    wire  equal$4$q;
    reg  equal$4$clock;
    reg  equal$5$d;
    wire  equal$5$q;
    reg  equal$5$clock;
    reg  equal$6$d;
    wire  equal$6$q;
    reg  equal$6$clock;
    reg  equal$7$d;
    wire  equal$7$q;
    reg  equal$7$clock;
    // Local signals
    reg  [7:0] joined$0;
    reg  [7:0] joined$1;
    reg  [7:0] joined$2;
    reg  [7:0] joined$3;
    reg  [7:0] joined$4;
    reg  [7:0] joined$5;
    reg  [7:0] joined$6;
    reg  [7:0] joined$7;
    reg  [7:0] joined$8;
    reg  [7:0] chosen;
    reg  [7:0] others;
    reg  [7:0] kept_valid;
    reg  [7:0] kept_switch;
    // Sub module instances
    iswitch_accel$datapath$ingress$member_table$address0s$0 address0s$0(
        .d(address0s$0$d),
        .q(address0s$0$q),
        .clock(address0s$0$clock)
    );
    iswitch_accel$datapath$ingress$member_table$address0s$1 address0s$1(
        .d(address0s$1$d),
        .q(address0s$1$q),
        .clock(address0s$1$clock)
    );
    iswitch_accel$datapath$ingress$member_table$address0s$2 address0s$2(
        .d(address0s$2$d),
        .q(address0s$2$q),
        .clock(address0s$2$clock)
    );
    iswitch_accel$datapath$ingress$member_table$address0s$3 address0s$3(
        .d(address0s$3$d),
        .q(address0s$3$q),
        .clock(address0s$3$clock)
    );
    iswitch_accel$datapath$ingress$member_table$address0s$4 address0s$4(
        .d(address0s$4$d),
        .q(address0s$4$q),
        .clock(address0s$4$clock)
    );
    iswitch_accel$datapath$ingress$member_table$address0s$5 address0s$5(
        .d(address0s$5$d),
        .q(address0s$5$q),
        .clock(address0s$5$clock)
    );
    iswitch_accel$datapath$ingress$member_table$address0s$6 address0s$6(
        .d(address0s$6$d),
        .q(address0s$6$q),
        .clock(address0s$6$clock)
    );
    iswitch_accel$datapath$ingress$member_table$address0s$7 address0s$7(
        .d(address0s$7$d),
        .q(address0s$7$q),
        .clock(address0s$7$clock)
    );
    iswitch_accel$datapath$ingress$member_table$address1s$0 address1s$0(
        .d(address1s$0$d),
        .q(address1s$0$q),
        .clock(address1s$0$clock)
    );
    iswitch_accel$datapath$ingress$member_table$address1s$1 address1s$1(
        .d(address1s$1$d),
        .q(address1s$1$q),
        .clock(address1s$1$clock)
    );
    iswitch_accel$datapath$ingress$member_table$address1s$2 address1s$2(
        .d(address1s$2$d),
        .q(address1s$2$q),
        .clock(address1s$2$clock)
    );
    iswitch_accel$datapath$ingress$member_table$address1s$3 address1s$3(
        .d(address1s$3$d),
        .q(address1s$3$q),
        .clock(address1s$3$clock)
    );
    iswitch_accel$datapath$ingress$member_table$address1s$4 address1s$4(
        .d(address1s$4$d),
        .q(address1s$4$q),
        .clock(address1s$4$clock)
    );
    iswitch_accel$datapath$ingress$member_table$address1s$5 address1s$5(
        .d(address1s$5$d),
        .q(address1s$5$q),
        .clock(address1s$5$clock)
    );
    iswitch_accel$datapath$ingress$member_table$address1s$6 address1s$6(
        .d(address1s$6$d),
        .q(address1s$6$q),
        .clock(address1s$6$clock)
    );
    iswitch_accel$datapath$ingress$member_table$address1s$7 address1s$7(
        .d(address1s$7$d),
        .q(address1s$7$q),
        .clock(address1s$7$clock)
    );
    iswitch_accel$datapath$ingress$member_table$ports$0 ports$0(
        .d(ports$0$d),
        .q(ports$0$q),
        .clock(ports$0$clock)
    );
    iswitch_accel$datapath$ingress$member_table$ports$1 ports$1(
        .d(ports$1$d),
        .q(ports$1$q),
        .clock(ports$1$clock)
    );
    iswitch_accel$datapath$ingress$member_table$ports$2 ports$2(
        .d(ports$2$d),
        .q(ports$2$q),
        .clock(ports$2$clock)
    );
    iswitch_accel$datapath$ingress$member_table$ports$3 ports$3(
        .d(ports$3$d),
        .q(ports$3$q),
        .clock(ports$3$clock)
    );
    iswitch_accel$datapath$ingress$member_table$ports$4 ports$4(
        .d(ports$4$d),
        .q(ports$4$q),
        .clock(ports$4$clock)
    );
    iswitch_accel$datapath$ingress$member_table$ports$5 ports$5(
        .d(ports$5$d),
        .q(ports$5$q),
        .clock(ports$5$clock)
    );
    iswitch_accel$datapath$ingress$member_table$ports$6 ports$6(
        .d(ports$6$d),
        .q(ports$6$q),
        .clock(ports$6$clock)
    );
    iswitch_accel$datapath$ingress$member_table$ports$7 ports$7(
        .d(ports$7$d),
        .q(ports$7$q),
        .clock(ports$7$clock)
    );
    iswitch_accel$datapath$ingress$member_table$board_ports$0 board_ports$0(
        .d(board_ports$0$d),
        .q(board_ports$0$q),
        .clock(board_ports$0$clock)
    );
    iswitch_accel$datapath$ingress$member_table$board_ports$1 board_ports$1(
        .d(board_ports$1$d),
        .q(board_ports$1$q),
        .clock(board_ports$1$clock)
    );
    iswitch_accel$datapath$ingress$member_table$board_ports$2 board_ports$2(
        .d(board_ports$2$d),
        .q(board_ports$2$q),
        .clock(board_ports$2$clock)
    );
    iswitch_accel$datapath$ingress$member_table$board_ports$3 board_ports$3(
        .d(board_ports$3$d),
        .q(board_ports$3$q),
        .clock(board_ports$3$clock)
    );
    iswitch_accel$datapath$ingress$member_table$board_ports$4 board_ports$4(
        .d(board_ports$4$d),
        .q(board_ports$4$q),
        .clock(board_ports$4$clock)
    );
    iswitch_accel$datapath$ingress$member_table$board_ports$5 board_ports$5(
        .d(board_ports$5$d),
        .q(board_ports$5$q),
        .clock(board_ports$5$clock)
    );
    iswitch_accel$datapath$ingress$member_table$board_ports$6 board_ports$6(
        .d(board_ports$6$d),
        .q(board_ports$6$q),
        .clock(board_ports$6$clock)
    );
    iswitch_accel$datapath$ingress$member_table$board_ports$7 board_ports$7(
        .d(board_ports$7$d),
        .q(board_ports$7$q),
        .clock(board_ports$7$clock)
    );
    iswitch_accel$datapath$ingress$member_table$collected collected(
        .d(collected$d),
        .q(collected$q),
        .clock(collected$clock)
    );
    iswitch_accel$datapath$ingress$member_table$chosen_port chosen_port(
        .d(chosen_port$d),
        .q(chosen_port$q),
        .clock(chosen_port$clock)
    );
    iswitch_accel$datapath$ingress$member_table$valid valid(
        .d(valid$d),
        .q(valid$q),
        .clock(valid$clock)
    );
    iswitch_accel$datapath$ingress$member_table$is_switch is_switch(
        .d(is_switch$d),
        .q(is_switch$q),
        .clock(is_switch$clock)
    );
    iswitch_accel$datapath$ingress$member_table$equal$0 equal$0(
        .d(equal$0$d),
        .q(equal$0$q),
        .clock(equal$0$clock)
    );
    iswitch_accel$datapath$ingress$member_table$equal$1 equal$1(
        .d(equal$1$d),
        .q(equal$1$q),
        .clock(equal$1$clock)
    );
    iswitch_accel$datapath$ingress$member_table$equal$2 equal$2(
        .d(equal$2$d),
        .q(equal$2$q),
        .clock(equal$2$clock)
    );
    iswitch_accel$datapath$ingress$member_table$equal$3 equal$3(
        .d(equal$3$d),
        .q(equal$3$q),
        .clock(equal$3$clock)
    );
    iswitch_accel$datapath$ingress$member_table$equal$4 equal$4(
        .d(equal$4$d),
        .q(equal$4$q),
        .clock(equal$4$clock)
    );
    iswitch_accel$datapath$ingress$member_table$equal$5 equal$5(
        .d(equal$5$d),
        .q(equal$5$q),
        .clock(equal$5$clock)
    );
    iswitch_accel$datapath$ingress$member_table$equal$6 equal$6(
        .d(equal$6$d),
        .q(equal$6$q),
        .clock(equal$6$clock)
    );
    iswitch_accel$datapath$ingress$member_table$equal$7 equal$7(
        .d(equal$7$d),
        .q(equal$7$q),
        .clock(equal$7$clock)
    );
    // Update code
    always @(*) begin
        valid$clock = clock;
        is_switch$clock = clock;
        collected$clock = clock;
        chosen_port$clock = clock;
        valid$d = valid$q;
        is_switch$d = is_switch$q;
        collected$d = collected$q;
        chosen_port$d = chosen_port$q;
        chosen = 32'h0;
        if (row == 0) begin
            chosen = (64'h1 << 0);
        end
        if (row == 1) begin
            chosen = (64'h1 << 1);
        end
        if (row == 2) begin
            chosen = (64'h1 << 2);
        end
        if (row == 3) begin
            chosen = (64'h1 << 3);
        end
        if (row == 4) begin
            chosen = (64'h1 << 4);
        end
        if (row == 5) begin
            chosen = (64'h1 << 5);
        end
        if (row == 6) begin
            chosen = (64'h1 << 6);
        end
        if (row == 7) begin
            chosen = (64'h1 << 7);
        end
        others = ~chosen;
        kept_valid = valid$q & others;
        kept_switch = is_switch$q & others;
        if (write & writes_port) begin
            valid$d = kept_valid;
            is_switch$d = kept_switch;
            if (data[32'h10]) begin
                valid$d = kept_valid | chosen;
            end
            if (data[32'h11]) begin
                is_switch$d = kept_switch | chosen;
            end
        end
        joined$0 = 32'h0;
        chosen_port$d = 32'h0;
        known = 1'b0;
        member = 32'h0;
        address0s$0$clock = clock;
        address1s$0$clock = clock;
        ports$0$clock = clock;
        equal$0$clock = clock;
        board_ports$0$clock = clock;
        board_ports$0$d = board_ports$0$q;
        address0s$0$d = address0s$0$q;
        address1s$0$d = address1s$0$q;
        ports$0$d = ports$0$q;
        if (write & chosen[0] & writes_port) begin
            ports$0$d = data[(32'h0)+:(16)];
            board_ports$0$d = data[(32'h18)+:(8)];
        end
        if (asker == 0) begin
            chosen_port$d = board_ports$0$q;
        end
        joined$1 = joined$0;
        if (valid$q[0]) begin
            joined$1 = joined$0 | board_ports$0$q;
        end
        if (write & chosen[0] & ~writes_port) begin
            address0s$0$d = data[(32'h0)+:(16)];
            address1s$0$d = data[(32'h10)+:(16)];
        end
        equal$0$d = valid$q[0] & (address0s$0$q == address0) & (address1s$0$q == address1) & (ports$0$q == port);
        if (equal$0$q) begin
            known = 1'b1;
            member = 0;
        end
        address0s$1$clock = clock;
        address1s$1$clock = clock;
        ports$1$clock = clock;
        equal$1$clock = clock;
        board_ports$1$clock = clock;
        board_ports$1$d = board_ports$1$q;
        address0s$1$d = address0s$1$q;
        address1s$1$d = address1s$1$q;
        ports$1$d = ports$1$q;
        if (write & chosen[1] & writes_port) begin
            ports$1$d = data[(32'h0)+:(16)];
            board_ports$1$d = data[(32'h18)+:(8)];
        end
        if (asker == 1) begin
            chosen_port$d = board_ports$1$q;
        end
        joined$2 = joined$1;
        if (valid$q[1]) begin
            joined$2 = joined$1 | board_ports$1$q;
        end
        if (write & chosen[1] & ~writes_port) begin
            address0s$1$d = data[(32'h0)+:(16)];
            address1s$1$d = data[(32'h10)+:(16)];
        end
        equal$1$d = valid$q[1] & (address0s$1$q == address0) & (address1s$1$q == address1) & (ports$1$q == port);
        if (equal$1$q) begin
            known = 1'b1;
            member = 1;
        end
        address0s$2$clock = clock;
        address1s$2$clock = clock;
        ports$2$clock = clock;
        equal$2$clock = clock;
        board_ports$2$clock = clock;
        board_ports$2$d = board_ports$2$q;
        address0s$2$d = address0s$2$q;
        address1s$2$d = address1s$2$q;
        ports$2$d = ports$2$q;
        if (write & chosen[2] & writes_port) begin
            ports$2$d = data[(32'h0)+:(16)];
            board_ports$2$d = data[(32'h18)+:(8)];
        end
        if (asker == 2) begin
            chosen_port$d = board_ports$2$q;
        end
        joined$3 = joined$2;
        if (valid$q[2]) begin
            joined$3 = joined$2 | board_ports$2$q;
        end
        if (write & chosen[2] & ~writes_port) begin
            address0s$2$d = data[(32'h0)+:(16)];
            address1s$2$d = data[(32'h10)+:(16)];
        end
        equal$2$d = valid$q[2] & (address0s$2$q == address0) & (address1s$2$q == address1) & (ports$2$q == port);
        if (equal$2$q) begin
            known = 1'b1;
            member = 2;
        end
        address0s$3$clock = clock;
        address1s$3$clock = clock;
        ports$3$clock = clock;
        equal$3$clock = clock;
        board_ports$3$clock = clock;
        board_ports$3$d = board_ports$3$q;
        address0s$3$d = address0s$3$q;
        address1s$3$d = address1s$3$q;
        ports$3$d = ports$3$q;
        if (write & chosen[3] & writes_port) begin
            ports$3$d = data[(32'h0)+:(16)];
            board_ports$3$d = data[(32'h18)+:(8)];
        end
        if (asker == 3) begin
            chosen_port$d = board_ports$3$q;
        end
        joined$4 = joined$3;
        if (valid$q[3]) begin
            joined$4 = joined$3 | board_ports$3$q;
        end
        if (write & chosen[3] & ~writes_port) begin
            address0s$3$d = data[(32'h0)+:(16)];
            address1s$3$d = data[(32'h10)+:(16)];
        end
        equal$3$d = valid$q[3] & (address0s$3$q == address0) & (address1s$3$q == address1) & (ports$3$q == port);
        if (equal$3$q) begin
            known = 1'b1;
            member = 3;
        end
        address0s$4$clock = clock;
        address1s$4$clock = clock;
        ports$4$clock = clock;
        equal$4$clock = clock;
        board_ports$4$clock = clock;
        board_ports$4$d = board_ports$4$q;
        address0s$4$d = address0s$4$q;
        address1s$4$d = address1s$4$q;
        ports$4$d = ports$4$q;
        if (write & chosen[4] & writes_port) begin
            ports$4$d = data[(32'h0)+:(16)];
            board_ports$4$d = data[(32'h18)+:(8)];
        end
        if (asker == 4) begin
            chosen_port$d = board_ports$4$q;
        end
        joined$5 = joined$4;
        if (valid$q[4]) begin
            joined$5 = joined$4 | board_ports$4$q;
        end
        if (write & chosen[4] & ~writes_port) begin
            address0s$4$d = data[(32'h0)+:(16)];
            address1s$4$d = data[(32'h10)+:(16)];
        end
        equal$4$d = valid$q[4] & (address0s$4$q == address0) & (address1s$4$q == address1) & (ports$4$q == port);
        if (equal$4$q) begin
            known = 1'b1;
            member = 4;
        end
        address0s$5$clock = clock;
        address1s$5$clock = clock;
        ports$5$clock = clock;
        equal$5$clock = clock;
        board_ports$5$clock = clock;
        board_ports$5$d = board_ports$5$q;
        address0s$5$d = address0s$5$q;
        address1s$5$d = address1s$5$q;
        ports$5$d = ports$5$q;
        if (write & chosen[5] & writes_port) begin
            ports$5$d = data[(32'h0)+:(16)];
            board_ports$5$d = data[(32'h18)+:(8)];
        end
        if (asker == 5) begin
            chosen_port$d = board_ports$5$q;
        end
        joined$6 = joined$5;
        if (valid$q[5]) begin
            joined$6 = joined$5 | board_ports$5$q;
        end
        if (write & chosen[5] & ~writes_port) begin
            address0s$5$d = data[(32'h0)+:(16)];
            address1s$5$d = data[(32'h10)+:(16)];
        end
        equal$5$d = valid$q[5] & (address0s$5$q == address0) & (address1s$5$q == address1) & (ports$5$q == port);
        if (equal$5$q) begin
            known = 1'b1;
            member = 5;
        end
        address0s$6$clock = clock;
        address1s$6$clock = clock;
        ports$6$clock = clock;
        equal$6$clock = clock;
        board_ports$6$clock = clock;
        board_ports$6$d = board_ports$6$q;
        address0s$6$d = address0s$6$q;
        address1s$6$d = address1s$6$q;
        ports$6$d = ports$6$q;
        if (write & chosen[6] & writes_port) begin
            ports$6$d = data[(32'h0)+:(16)];
            board_ports$6$d = data[(32'h18)+:(8)];
        end
        if (asker == 6) begin
            chosen_port$d = board_ports$6$q;
        end
        joined$7 = joined$6;
        if (valid$q[6]) begin
            joined$7 = joined$6 | board_ports$6$q;
        end
        if (write & chosen[6] & ~writes_port) begin
            address0s$6$d = data[(32'h0)+:(16)];
            address1s$6$d = data[(32'h10)+:(16)];
        end
        equal$6$d = valid$q[6] & (address0s$6$q == address0) & (address1s$6$q == address1) & (ports$6$q == port);
        if (equal$6$q) begin
            known = 1'b1;
            member = 6;
        end
        address0s$7$clock = clock;
        address1s$7$clock = clock;
        ports$7$clock = clock;
        equal$7$clock = clock;
        board_ports$7$clock = clock;
        board_ports$7$d = board_ports$7$q;
        address0s$7$d = address0s$7$q;
        address1s$7$d = address1s$7$q;
        ports$7$d = ports$7$q;
        if (write & chosen[7] & writes_port) begin
            ports$7$d = data[(32'h0)+:(16)];
            board_ports$7$d = data[(32'h18)+:(8)];
        end
        if (asker == 7) begin
            chosen_port$d = board_ports$7$q;
        end
        joined$8 = joined$7;
        if (valid$q[7]) begin
            joined$8 = joined$7 | board_ports$7$q;
        end
        if (write & chosen[7] & ~writes_port) begin
            address0s$7$d = data[(32'h0)+:(16)];
            address1s$7$d = data[(32'h10)+:(16)];
        end
        equal$7$d = valid$q[7] & (address0s$7$q == address0) & (address1s$7$q == address1) & (ports$7$q == port);
        if (equal$7$q) begin
            known = 1'b1;
            member = 7;
        end
        if (reset) begin
            valid$d = 32'h0;
        end
        collected$d = joined$8;
        all_ports = collected$q;
        asker_port = chosen_port$q;
        members = valid$q;
        switches = is_switch$q;
    end
endmodule // iswitch_accel$datapath$ingress$member_table
module iswitch_accel$datapath$ingress$member_table$address0s$0(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$address0s$0
module iswitch_accel$datapath$ingress$member_table$address0s$1(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$address0s$1
module iswitch_accel$datapath$ingress$member_table$address0s$2(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$address0s$2
module iswitch_accel$datapath$ingress$member_table$address0s$3(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$address0s$3
module iswitch_accel$datapath$ingress$member_table$address0s$4(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$address0s$4
module iswitch_accel$datapath$ingress$member_table$address0s$5(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$address0s$5
module iswitch_accel$datapath$ingress$member_table$address0s$6(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$address0s$6
module iswitch_accel$datapath$ingress$member_table$address0s$7(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$address0s$7
module iswitch_accel$datapath$ingress$member_table$address1s$0(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$address1s$0
module iswitch_accel$datapath$ingress$member_table$address1s$1(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$address1s$1
module iswitch_accel$datapath$ingress$member_table$address1s$2(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$address1s$2
module iswitch_accel$datapath$ingress$member_table$address1s$3(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$address1s$3
module iswitch_accel$datapath$ingress$member_table$address1s$4(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$address1s$4
module iswitch_accel$datapath$ingress$member_table$address1s$5(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$address1s$5
module iswitch_accel$datapath$ingress$member_table$address1s$6(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$address1s$6
module iswitch_accel$datapath$ingress$member_table$address1s$7(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$address1s$7
module iswitch_accel$datapath$ingress$member_table$board_ports$0(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$board_ports$0
module iswitch_accel$datapath$ingress$member_table$board_ports$1(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$board_ports$1
module iswitch_accel$datapath$ingress$member_table$board_ports$2(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$board_ports$2
module iswitch_accel$datapath$ingress$member_table$board_ports$3(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$board_ports$3
module iswitch_accel$datapath$ingress$member_table$board_ports$4(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$board_ports$4
module iswitch_accel$datapath$ingress$member_table$board_ports$5(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$board_ports$5
module iswitch_accel$datapath$ingress$member_table$board_ports$6(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$board_ports$6
module iswitch_accel$datapath$ingress$member_table$board_ports$7(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$board_ports$7
module iswitch_accel$datapath$ingress$member_table$chosen_port(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$chosen_port
module iswitch_accel$datapath$ingress$member_table$collected(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$collected
module iswitch_accel$datapath$ingress$member_table$equal$0(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$equal$0
module iswitch_accel$datapath$ingress$member_table$equal$1(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$equal$1
module iswitch_accel$datapath$ingress$member_table$equal$2(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$equal$2
module iswitch_accel$datapath$ingress$member_table$equal$3(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$equal$3
module iswitch_accel$datapath$ingress$member_table$equal$4(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$equal$4
module iswitch_accel$datapath$ingress$member_table$equal$5(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$equal$5
module iswitch_accel$datapath$ingress$member_table$equal$6(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$equal$6
module iswitch_accel$datapath$ingress$member_table$equal$7(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$equal$7
module iswitch_accel$datapath$ingress$member_table$is_switch(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$is_switch
module iswitch_accel$datapath$ingress$member_table$ports$0(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$ports$0
module iswitch_accel$datapath$ingress$member_table$ports$1(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$ports$1
module iswitch_accel$datapath$ingress$member_table$ports$2(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$ports$2
module iswitch_accel$datapath$ingress$member_table$ports$3(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$ports$3
module iswitch_accel$datapath$ingress$member_table$ports$4(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$ports$4
module iswitch_accel$datapath$ingress$member_table$ports$5(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$ports$5
module iswitch_accel$datapath$ingress$member_table$ports$6(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$ports$6
module iswitch_accel$datapath$ingress$member_table$ports$7(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$ports$7
module iswitch_accel$datapath$ingress$member_table$valid(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$member_table$valid
module iswitch_accel$datapath$ingress$open(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$open
module iswitch_accel$datapath$ingress$shut(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$ingress$shut
module iswitch_accel$datapath$leaving(clock,reset,data_in,push,data_out,valid,empty,pop,room);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [416:0] data_in;
    input wire  push;
    output reg  [416:0] data_out;
    output reg  valid;
    output reg  empty;
    input wire  pop;
    output reg  room;
    // Constant declarations
    localparam  limit = 8'h1c;
    // Stub signals
    reg  ram$clock;
    reg  [4:0] ram$write_address;
    reg  [416:0] ram$write_data;
    reg  ram$write_enable;
    reg  [4:0] ram$read_address;
    wire  [416:0] ram$read_data;
    reg  [4:0] write_at$d;
    wire  [4:0] write_at$q;
    reg  write_at$clock;
    reg  [4:0] read_at$d;
    wire  [4:0] read_at$q;
    reg  read_at$clock;
    reg  [7:0] count$d;
    wire  [7:0] count$q;
    reg  count$clock;
    reg  filled$d;
    wire  filled$q;
    reg  filled$clock;
    reg  is_empty$d;
    wire  is_empty$q;
    reg  is_empty$clock;
    reg  has_room$d;
    wire  has_room$q;
    reg  has_room$clock;
    // Local signals
    reg  [7:0] next_count;
    // Sub module instances
    iswitch_accel$datapath$leaving$ram ram(
        .clock(ram$clock),
        .write_address(ram$write_address),
        .write_data(ram$write_data),
        .write_enable(ram$write_enable),
        .read_address(ram$read_address),
        .read_data(ram$read_data)
    );
    iswitch_accel$datapath$leaving$write_at write_at(
        .d(write_at$d),
        .q(write_at$q),
        .clock(write_at$clock)
    );
    iswitch_accel$datapath$leaving$read_at read_at(
        .d(read_at$d),
        .q(read_at$q),
        .clock(read_at$clock)
    );
    iswitch_accel$datapath$leaving$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );
    iswitch_accel$datapath$leaving$filled filled(
        .d(filled$d),
        .q(filled$q),
        .clock(filled$clock)
    );
    iswitch_accel$datapath$leaving$is_empty is_empty(
        .d(is_empty$d),
        .q(is_empty$q),
        .clock(is_empty$clock)
    );
    iswitch_accel$datapath$leaving$has_room has_room(
        .d(has_room$d),
        .q(has_room$q),
        .clock(has_room$clock)
    );
    // Update code
    always @(*) begin
        write_at$clock = clock;
        read_at$clock = clock;
        count$clock = clock;
        filled$clock = clock;
        is_empty$clock = clock;
        has_room$clock = clock;
        write_at$d = write_at$q;
        read_at$d = read_at$q;
        count$d = count$q;
        filled$d = filled$q;
        is_empty$d = is_empty$q;
        has_room$d = has_room$q;
        ram$clock = clock;
        ram$write_address = write_at$q;
        ram$write_data = data_in;
        ram$write_enable = push;
        ram$read_address = read_at$q;
        data_out = ram$read_data;
        valid = filled$q;
        empty = is_empty$q;
        room = has_room$q;
        next_count = count$q + 32'h1;
        if (pop) begin
            next_count = count$q - 32'h1;
        end
        if (push) begin
            write_at$d = write_at$q + 32'h1;
        end
        if (pop) begin
            read_at$d = read_at$q + 32'h1;
        end
        if (push ^ pop) begin
            count$d = next_count;
        end
        if (pop) begin
            filled$d = count$q != 32'h1;
            is_empty$d = count$q == 32'h1;
        end
        if (push) begin
            filled$d = 1'b1;
            is_empty$d = 1'b0;
        end
        has_room$d = count$q < limit;
        if (reset) begin
            write_at$d = 32'h0;
            read_at$d = 32'h0;
            count$d = 32'h0;
            filled$d = 1'b0;
            is_empty$d = 1'b1;
            has_room$d = 1'b0;
        end
    end
endmodule // iswitch_accel$datapath$leaving
module iswitch_accel$datapath$leaving$count(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$leaving$count
module iswitch_accel$datapath$leaving$filled(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$leaving$filled
module iswitch_accel$datapath$leaving$has_room(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$leaving$has_room
module iswitch_accel$datapath$leaving$is_empty(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$leaving$is_empty
module iswitch_accel$datapath$leaving$ram(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [4:0] write_address;
    input wire  [416:0] write_data;
    input wire  write_enable;
    input wire  [4:0] read_address;
    output reg  [416:0] read_data;
    // Update code (custom)
    (* ram_style = "distributed" *) reg [416:0] words[31:0];
    integer i;
    initial for (i = 0; i <= 31; i = i + 1) words[i] = 0;
    always @(posedge clock) if (write_enable) words[write_address] <= write_data;
    always @(*) read_data = words[read_address];
endmodule // iswitch_accel$datapath$leaving$ram
module iswitch_accel$datapath$leaving$read_at(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$leaving$read_at
module iswitch_accel$datapath$leaving$write_at(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$leaving$write_at
module iswitch_accel$datapath$merge(clock,reset,ordinary,ordinary_valid,ordinary_copied,host_ports,ordinary_ready,result,result_valid,result_ready,result_stalled,flit,push,room);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [416:0] ordinary;
    input wire  ordinary_valid;
    input wire  ordinary_copied;
    input wire  [7:0] host_ports;
    output reg  ordinary_ready;
    input wire  [416:0] result;
    input wire  result_valid;
    output reg  result_ready;
    output reg  result_stalled;
    output reg  [416:0] flit;
    output reg  push;
    input wire  room;
    // Enums
    localparam MergeState$Ordinary = 0;
    localparam MergeState$Result = 1;
    // Stub signals
    reg  state$d;
    wire  state$q;
    reg  state$clock;
    reg  picks_ordinary$d;
    wire  picks_ordinary$q;
    reg  picks_ordinary$clock;
    reg  had_room$d;
    wire  had_room$q;
    reg  had_room$clock;
    reg  lacked_room$d;
    wire  lacked_room$q;
    reg  lacked_room$clock;
    reg  takes_ordinary$d;
    wire  takes_ordinary$q;
    reg  takes_ordinary$clock;
    reg  takes_result$d;
    wire  takes_result$q;
    reg  takes_result$clock;
    reg  stalls_result$d;
    wire  stalls_result$q;
    reg  stalls_result$clock;
    reg  midway$d;
    wire  midway$q;
    reg  midway$clock;
    reg  [416:0] copy$flit;
    reg  copy$adds;
    reg  [7:0] copy$ports;
    wire  [416:0] copy$copied;
    // Local signals
    reg  offered;
    reg  moves;
    reg  proceeds;
    reg  ends;
    // Sub module instances
    iswitch_accel$datapath$merge$state state(
        .d(state$d),
        .q(state$q),
        .clock(state$clock)
    );
    iswitch_accel$datapath$merge$picks_ordinary picks_ordinary(
        .d(picks_ordinary$d),
        .q(picks_ordinary$q),
        .clock(picks_ordinary$clock)
    );
    iswitch_accel$datapath$merge$had_room had_room(
        .d(had_room$d),
        .q(had_room$q),
        .clock(had_room$clock)
    );
    iswitch_accel$datapath$merge$lacked_room lacked_room(
        .d(lacked_room$d),
        .q(lacked_room$q),
        .clock(lacked_room$clock)
    );
    iswitch_accel$datapath$merge$takes_ordinary takes_ordinary(
        .d(takes_ordinary$d),
        .q(takes_ordinary$q),
        .clock(takes_ordinary$clock)
    );
    iswitch_accel$datapath$merge$takes_result takes_result(
        .d(takes_result$d),
        .q(takes_result$q),
        .clock(takes_result$clock)
    );
    iswitch_accel$datapath$merge$stalls_result stalls_result(
        .d(stalls_result$d),
        .q(stalls_result$q),
        .clock(stalls_result$clock)
    );
    iswitch_accel$datapath$merge$midway midway(
        .d(midway$d),
        .q(midway$q),
        .clock(midway$clock)
    );
    iswitch_accel$datapath$merge$copy copy(
        .flit(copy$flit),
        .adds(copy$adds),
        .ports(copy$ports),
        .copied(copy$copied)
    );
    // Update code
    always @(*) begin
        state$clock = clock;
        picks_ordinary$clock = clock;
        had_room$clock = clock;
        lacked_room$clock = clock;
        takes_ordinary$clock = clock;
        takes_result$clock = clock;
        midway$clock = clock;
        stalls_result$clock = clock;
        state$d = state$q;
        picks_ordinary$d = picks_ordinary$q;
        had_room$d = had_room$q;
        lacked_room$d = lacked_room$q;
        takes_ordinary$d = takes_ordinary$q;
        takes_result$d = takes_result$q;
        midway$d = midway$q;
        stalls_result$d = stalls_result$q;
        copy$flit = ordinary;
        copy$adds = ordinary_copied;
        copy$ports = host_ports;
        ordinary_ready = takes_ordinary$q;
        result_ready = takes_result$q;
        result_stalled = stalls_result$q;
        flit = result;
        if (picks_ordinary$q) begin
            flit = copy$copied;
        end
        offered = ordinary_valid;
        ends = ordinary[(64'h1a0)+:(1)];
        if (state$q == MergeState$Result) begin
            offered = result_valid;
            ends = result[(64'h1a0)+:(1)];
        end
        moves = had_room$q & offered;
        push = moves;
        proceeds = ~lacked_room$q & offered;
        if (proceeds) begin
            midway$d = ~ends;
        end
        if ((proceeds & ends) | (~lacked_room$q & ~proceeds & ~midway$q)) begin
            state$d = MergeState$Ordinary;
            picks_ordinary$d = 1'b1;
            if ((state$q == MergeState$Ordinary) & result_valid) begin
                state$d = MergeState$Result;
                picks_ordinary$d = 1'b0;
            end
        end
        if (reset) begin
            state$d = MergeState$Ordinary;
            picks_ordinary$d = 1'b1;
            midway$d = 1'b0;
        end
        had_room$d = room & ~reset;
        lacked_room$d = ~room | reset;
        takes_ordinary$d = had_room$d & (state$d == MergeState$Ordinary);
        takes_result$d = had_room$d & (state$d == MergeState$Result);
        stalls_result$d = ~had_room$d | (state$d != MergeState$Result);
    end
endmodule // iswitch_accel$datapath$merge
module iswitch_accel$datapath$merge$copy(flit,adds,ports,copied);
    // Module arguments
    input wire  [416:0] flit;
    input wire  adds;
    input wire  [7:0] ports;
    output reg  [416:0] copied;
    // Local signals
    reg  [127:0] user;
    reg  [127:0] more;
    // Update code
    always @(*) begin
        user = flit[(64'h120)+:(128)];
        more = user;
        if (adds) begin
            more[(64'h18)+:(8)] = user[(64'h18)+:(8)] | ports;
        end
        copied = flit;
        copied[(64'h120)+:(128)] = more;
    end
endmodule // iswitch_accel$datapath$merge$copy
module iswitch_accel$datapath$merge$had_room(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$merge$had_room
module iswitch_accel$datapath$merge$lacked_room(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$merge$lacked_room
module iswitch_accel$datapath$merge$midway(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$merge$midway
module iswitch_accel$datapath$merge$picks_ordinary(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$merge$picks_ordinary
module iswitch_accel$datapath$merge$stalls_result(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$merge$stalls_result
module iswitch_accel$datapath$merge$state(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Enums
    localparam MergeState$Ordinary = 0;
    localparam MergeState$Result = 1;
    // Update code (custom)
    initial begin
       q = 64'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$merge$state
module iswitch_accel$datapath$merge$takes_ordinary(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$merge$takes_ordinary
module iswitch_accel$datapath$merge$takes_result(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$merge$takes_result
module iswitch_accel$datapath$output_module(clock,reset,pace,template,info,info_valid,info_pop,sum,sum_valid,no_sum,sum_pop,flit,valid,ready,stalled,busy,free);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [7:0] pace;
    input wire  [223:0] template;
    input wire  [72:0] info;
    input wire  info_valid;
    output reg  info_pop;
    input wire  [255:0] sum;
    input wire  sum_valid;
    input wire  no_sum;
    output reg  sum_pop;
    output reg  [416:0] flit;
    output reg  valid;
    input wire  ready;
    input wire  stalled;
    output reg  busy;
    output reg  free;
    // Enums
    localparam OutputState$Idle = 0;
    localparam OutputState$Prepare = 1;
    localparam OutputState$Head = 2;
    localparam OutputState$Body = 3;
    localparam OutputState$Tail = 4;
    // Stub signals
    reg  [2:0] state$d;
    wire  [2:0] state$q;
    reg  state$clock;
    reg  acts$d;
    wire  acts$q;
    reg  acts$clock;
    reg  heads$d;
    wire  heads$q;
    reg  heads$clock;
    reg  covers$d;
    wire  covers$q;
    reg  covers$clock;
    reg  header$clock;
    reg  [223:0] header$template;
    reg  [72:0] header$info;
    wire  [255:0] header$head;
    wire  [255:0] header$tail;
    wire  [15:0] header$frame_len;
    wire  [31:0] header$keep;
    reg  [72:0] held_info$d;
    wire  [72:0] held_info$q;
    reg  held_info$clock;
    reg  [223:0] held_template$d;
    wire  [223:0] held_template$q;
    reg  held_template$clock;
    reg  begun$d;
    wire  begun$q;
    reg  begun$clock;
    reg  [15:0] debt$d;
    wire  [15:0] debt$q;
    reg  debt$clock;
    reg  is_free$d;
    wire  is_free$q;
    reg  is_free$clock;
    reg  [1:0] waited$d;
    wire  [1:0] waited$q;
    reg  waited$clock;
    reg  [5:0] left$d;
    wire  [5:0] left$q;
    reg  left$clock;
    reg  spills$d;
    wire  spills$q;
    reg  spills$clock;
    reg  [255:0] view$lanes;
    wire  [255:0] view$halves;
    reg  carried$clock;
    reg  carried$ready;
    reg  carried$stalled;
    reg  carried$sum_valid;
    reg  carried$no_sum;
    reg  carried$heads;
    reg  [255:0] carried$sum;
    reg  [255:0] carried$tail;
    wire  [255:0] carried$held;
    reg  [255:0] joined$earlier;
    reg  [255:0] joined$later;
    reg  [255:0] joined$head;
    reg  joined$heads;
    reg  joined$covers;
    wire  [255:0] joined$beat;
    reg  [15:0] joined$len;
    reg  [7:0] joined$ports;
    wire  [127:0] joined$user;
    reg  closes$d;
    wire  closes$q;
    reg  closes$clock;
    // Local signals
    reg  owes;
    reg  [15:0] step;
    reg  [15:0] frame_len;
    reg  [15:0] cost;
    reg  [8:0] floats;
    reg  [8:0] before_last;
    reg  advances;
    // Sub module instances
    iswitch_accel$datapath$output_module$state state(
        .d(state$d),
        .q(state$q),
        .clock(state$clock)
    );
    iswitch_accel$datapath$output_module$acts acts(
        .d(acts$d),
        .q(acts$q),
        .clock(acts$clock)
    );
    iswitch_accel$datapath$output_module$heads heads(
        .d(heads$d),
        .q(heads$q),
        .clock(heads$clock)
    );
    iswitch_accel$datapath$output_module$covers covers(
        .d(covers$d),
        .q(covers$q),
        .clock(covers$clock)
    );
    iswitch_accel$datapath$output_module$header header(
        .clock(header$clock),
        .template(header$template),
        .info(header$info),
        .head(header$head),
        .tail(header$tail),
        .frame_len(header$frame_len),
        .keep(header$keep)
    );
    iswitch_accel$datapath$output_module$held_info held_info(
        .d(held_info$d),
        .q(held_info$q),
        .clock(held_info$clock)
    );
    iswitch_accel$datapath$output_module$held_template held_template(
        .d(held_template$d),
        .q(held_template$q),
        .clock(held_template$clock)
    );
    iswitch_accel$datapath$output_module$begun begun(
        .d(begun$d),
        .q(begun$q),
        .clock(begun$clock)
    );
    iswitch_accel$datapath$output_module$debt debt(
        .d(debt$d),
        .q(debt$q),
        .clock(debt$clock)
    );
    iswitch_accel$datapath$output_module$is_free is_free(
        .d(is_free$d),
        .q(is_free$q),
        .clock(is_free$clock)
    );
    iswitch_accel$datapath$output_module$waited waited(
        .d(waited$d),
        .q(waited$q),
        .clock(waited$clock)
    );
    iswitch_accel$datapath$output_module$left left(
        .d(left$d),
        .q(left$q),
        .clock(left$clock)
    );
    iswitch_accel$datapath$output_module$spills spills(
        .d(spills$d),
        .q(spills$q),
        .clock(spills$clock)
    );
    iswitch_accel$datapath$output_module$view view(
        .lanes(view$lanes),
        .halves(view$halves)
    );
    iswitch_accel$datapath$output_module$carried carried(
        .clock(carried$clock),
        .ready(carried$ready),
        .stalled(carried$stalled),
        .sum_valid(carried$sum_valid),
        .no_sum(carried$no_sum),
        .heads(carried$heads),
        .sum(carried$sum),
        .tail(carried$tail),
        .held(carried$held)
    );
    iswitch_accel$datapath$output_module$joined joined(
        .earlier(joined$earlier),
        .later(joined$later),
        .head(joined$head),
        .heads(joined$heads),
        .covers(joined$covers),
        .beat(joined$beat),
        .len(joined$len),
        .ports(joined$ports),
        .user(joined$user)
    );
    iswitch_accel$datapath$output_module$closes closes(
        .d(closes$d),
        .q(closes$q),
        .clock(closes$clock)
    );
    // Update code
    always @(*) begin
        held_template$clock = clock;
        begun$clock = clock;
        debt$clock = clock;
        is_free$clock = clock;
        acts$clock = clock;
        held_template$d = held_template$q;
        begun$d = begun$q;
        debt$d = debt$q;
        is_free$d = is_free$q;
        acts$d = acts$q;
        state$clock = clock;
        heads$clock = clock;
        covers$clock = clock;
        held_info$clock = clock;
        waited$clock = clock;
        left$clock = clock;
        spills$clock = clock;
        closes$clock = clock;
        state$d = state$q;
        heads$d = heads$q;
        covers$d = covers$q;
        held_info$d = held_info$q;
        waited$d = waited$q;
        left$d = left$q;
        spills$d = spills$q;
        closes$d = closes$q;
        header$clock = clock;
        carried$clock = clock;
        header$template = held_template$q;
        header$info = held_info$q;
        view$lanes = sum;
        joined$earlier = carried$held;
        joined$later = view$halves;
        floats = info[(64'h40)+:(9)];
        before_last = floats - 32'h1;
        info_pop = 1'b0;
        sum_pop = 1'b0;
        advances = ready & sum_valid;
        frame_len = header$frame_len + 32'h18;
        cost = frame_len << 32'h2;
        step = ((pace) & 16'hffff);
        owes = |debt$q[(32'hd)+:(3)];
        begun$d = heads$q & advances & ~reset;
        if (begun$q) begin
            debt$d = debt$q + cost;
        end
        else begin
            debt$d = debt$q - step;
        end
        if ((~begun$q & (debt$q < step)) | ~|pace | reset) begin
            debt$d = 32'h0;
        end
        is_free$d = (state$q == OutputState$Idle) & ~info_valid & ~owes & ~begun$q;
        free = is_free$q;
        busy = info_valid | (state$q != OutputState$Idle);
        case (state$q)
            OutputState$Idle:
                begin
                    waited$d = 32'h0;
                    if (info_valid) begin
                        info_pop = 1'b1;
                        left$d = before_last[(32'h3)+:(6)];
                        spills$d = before_last[32'h2] | (before_last[32'h1] & before_last[32'h0]);
                        state$d = OutputState$Prepare;
                    end
                end
            OutputState$Prepare:
                begin
                    if (~&waited$q) begin
                        waited$d = waited$q + 32'h1;
                    end
                    else if (~owes) begin
                        state$d = OutputState$Head;
                        heads$d = 1'b1;
                        covers$d = 1'b1;
                    end
                end
            OutputState$Head:
                begin
                    if (advances) begin
                        state$d = OutputState$Body;
                        heads$d = 1'b0;
                        covers$d = 1'b0;
                        closes$d = ~|left$q & ~spills$q;
                    end
                end
            OutputState$Body:
                begin
                    if (advances) begin
                        sum_pop = 1'b1;
                        left$d = left$q - 32'h1;
                        closes$d = (left$q == 32'h1) & ~spills$q;
                        if (~|left$q) begin
                            state$d = OutputState$Tail;
                            closes$d = 1'b1;
                            covers$d = 1'b1;
                            if (closes$q) begin
                                state$d = OutputState$Idle;
                                closes$d = 1'b0;
                                covers$d = 1'b0;
                            end
                        end
                    end
                end
            OutputState$Tail:
                begin
                    if (ready) begin
                        state$d = OutputState$Idle;
                        closes$d = 1'b0;
                        covers$d = 1'b0;
                    end
                end
            default:
                begin
                    state$d = OutputState$Idle;
                end
        endcase
        if (~acts$q) begin
            held_info$d = info;
            held_template$d = template;
        end
        joined$head = header$head;
        joined$heads = heads$q;
        joined$covers = covers$q;
        flit[(64'h0)+:(256)] = joined$beat;
        flit[(64'h1a0)+:(1)] = closes$q;
        flit[(64'h100)+:(32)] = 64'hffffffff;
        if (closes$q) begin
            flit[(64'h100)+:(32)] = header$keep;
        end
        flit[(64'h120)+:(128)] = joined$user;
        carried$ready = ready;
        carried$stalled = stalled;
        carried$sum_valid = sum_valid;
        carried$no_sum = no_sum;
        carried$heads = heads$q;
        carried$sum = view$halves;
        carried$tail = header$tail;
        joined$len = header$frame_len;
        joined$ports = held_template$q[(64'hc8)+:(8)];
        if (reset) begin
            state$d = OutputState$Idle;
            heads$d = 1'b0;
            covers$d = 1'b0;
            closes$d = 1'b0;
        end
        acts$d = state$d != OutputState$Idle;
        valid = (state$q == OutputState$Tail) | (sum_valid & ((state$q == OutputState$Head) | (state$q == OutputState$Body)));
    end
endmodule // iswitch_accel$datapath$output_module
module iswitch_accel$datapath$output_module$acts(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$acts
module iswitch_accel$datapath$output_module$begun(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$begun
module iswitch_accel$datapath$output_module$carried(clock,ready,stalled,sum_valid,no_sum,heads,sum,tail,held);
    // Module arguments
    input wire  clock;
    input wire  ready;
    input wire  stalled;
    input wire  sum_valid;
    input wire  no_sum;
    input wire  heads;
    input wire  [255:0] sum;
    input wire  [255:0] tail;
    output reg  [255:0] held;
    // Stub signals
    reg  [255:0] bytes$d;
    wire  [255:0] bytes$q;
    reg  bytes$clock;
    // Local signals
    reg  loads;
    // Sub module instances
    iswitch_accel$datapath$output_module$carried$bytes bytes(
        .d(bytes$d),
        .q(bytes$q),
        .clock(bytes$clock)
    );
    // Update code
    always @(*) begin
        bytes$clock = clock;
        bytes$d = bytes$q;
        if (~stalled & ~no_sum) begin
            bytes$d = sum;
            if (heads) begin
                bytes$d = tail;
            end
        end
        loads = ready & sum_valid;
        bytes$d[(64'ha0)+:(16)] = bytes$q[(64'ha0)+:(16)];
        bytes$d[(64'hb0)+:(16)] = bytes$q[(64'hb0)+:(16)];
        if (loads) begin
            bytes$d[(64'ha0)+:(16)] = sum[(64'ha0)+:(16)];
            bytes$d[(64'hb0)+:(16)] = sum[(64'hb0)+:(16)];
            if (heads) begin
                bytes$d[(64'ha0)+:(16)] = tail[(64'ha0)+:(16)];
                bytes$d[(64'hb0)+:(16)] = tail[(64'hb0)+:(16)];
            end
        end
        held = bytes$q;
    end
endmodule // iswitch_accel$datapath$output_module$carried
module iswitch_accel$datapath$output_module$carried$bytes(d,q,clock);
    // Module arguments
    input wire  [255:0] d;
    output reg  [255:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 256'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$carried$bytes
module iswitch_accel$datapath$output_module$closes(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$closes
module iswitch_accel$datapath$output_module$covers(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$covers
module iswitch_accel$datapath$output_module$debt(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$debt
module iswitch_accel$datapath$output_module$header(clock,template,info,head,tail,frame_len,keep);
    // Module arguments
    input wire  clock;
    input wire  [223:0] template;
    input wire  [72:0] info;
    output reg  [255:0] head;
    output reg  [255:0] tail;
    output reg  [15:0] frame_len;
    output reg  [31:0] keep;
    // Stub signals
    reg  [15:0] ip_swap$half;
    wire  [15:0] ip_swap$swapped;
    reg  [15:0] udp_swap$half;
    wire  [15:0] udp_swap$swapped;
    reg  [15:0] ip_len$d;
    wire  [15:0] ip_len$q;
    reg  ip_len$clock;
    reg  [15:0] udp_len$d;
    wire  [15:0] udp_len$q;
    reg  udp_len$clock;
    reg  [15:0] natural_len$d;
    wire  [15:0] natural_len$q;
    reg  natural_len$clock;
    reg  [15:0] padded_len$d;
    wire  [15:0] padded_len$q;
    reg  padded_len$clock;
    reg  [16:0] raw_sum$d;
    wire  [16:0] raw_sum$q;
    reg  raw_sum$clock;
    reg  [15:0] folded$d;
    wire  [15:0] folded$q;
    reg  folded$clock;
    reg  [31:0] outside$d;
    wire  [31:0] outside$q;
    reg  outside$clock;
    // Local signals
    reg  [15:0] float_bytes;
    reg  [16:0] sum;
    reg  [15:0] carry;
    reg  [15:0] low_sum;
    reg  [4:0] rest;
    reg  [31:0] ones;
    reg  [15:0] tos_high;
    reg  [63:0] seg;
    // Sub module instances
    iswitch_accel$datapath$output_module$header$ip_swap ip_swap(
        .half(ip_swap$half),
        .swapped(ip_swap$swapped)
    );
    iswitch_accel$datapath$output_module$header$udp_swap udp_swap(
        .half(udp_swap$half),
        .swapped(udp_swap$swapped)
    );
    iswitch_accel$datapath$output_module$header$ip_len ip_len(
        .d(ip_len$d),
        .q(ip_len$q),
        .clock(ip_len$clock)
    );
    iswitch_accel$datapath$output_module$header$udp_len udp_len(
        .d(udp_len$d),
        .q(udp_len$q),
        .clock(udp_len$clock)
    );
    iswitch_accel$datapath$output_module$header$natural_len natural_len(
        .d(natural_len$d),
        .q(natural_len$q),
        .clock(natural_len$clock)
    );
    iswitch_accel$datapath$output_module$header$padded_len padded_len(
        .d(padded_len$d),
        .q(padded_len$q),
        .clock(padded_len$clock)
    );
    iswitch_accel$datapath$output_module$header$raw_sum raw_sum(
        .d(raw_sum$d),
        .q(raw_sum$q),
        .clock(raw_sum$clock)
    );
    iswitch_accel$datapath$output_module$header$folded folded(
        .d(folded$d),
        .q(folded$q),
        .clock(folded$clock)
    );
    iswitch_accel$datapath$output_module$header$outside outside(
        .d(outside$d),
        .q(outside$q),
        .clock(outside$clock)
    );
    // Update code
    always @(*) begin
        ip_len$clock = clock;
        udp_len$clock = clock;
        natural_len$clock = clock;
        padded_len$clock = clock;
        raw_sum$clock = clock;
        folded$clock = clock;
        outside$clock = clock;
        ip_len$d = ip_len$q;
        udp_len$d = udp_len$q;
        natural_len$d = natural_len$q;
        padded_len$d = padded_len$q;
        raw_sum$d = raw_sum$q;
        folded$d = folded$q;
        outside$d = outside$q;
        float_bytes = ((info[(64'h40)+:(9)]) & 16'hffff) << 32'h2;
        ip_len$d = float_bytes + 32'h24;
        udp_len$d = float_bytes + 32'h10;
        natural_len$d = float_bytes + 32'h32;
        padded_len$d = natural_len$q;
        if (natural_len$q < 32'h3c) begin
            padded_len$d = 32'h3c;
        end
        ip_swap$half = ip_len$q;
        udp_swap$half = udp_len$q;
        sum = ((template[(64'hd0)+:(16)]) & 17'h1ffff) + ((ip_swap$swapped) & 17'h1ffff);
        raw_sum$d = sum;
        low_sum = raw_sum$q[(32'h0)+:(16)];
        carry = ((raw_sum$q[(32'h10)+:(1)]) & 16'hffff);
        folded$d = low_sum + carry;
        rest = padded_len$q[(32'h0)+:(5)];
        ones = 64'hffffffff;
        outside$d = 32'h0;
        if (rest == 1) begin
            outside$d = ones << 1;
        end
        if (rest == 2) begin
            outside$d = ones << 2;
        end
        if (rest == 3) begin
            outside$d = ones << 3;
        end
        if (rest == 4) begin
            outside$d = ones << 4;
        end
        if (rest == 5) begin
            outside$d = ones << 5;
        end
        if (rest == 6) begin
            outside$d = ones << 6;
        end
        if (rest == 7) begin
            outside$d = ones << 7;
        end
        if (rest == 8) begin
            outside$d = ones << 8;
        end
        if (rest == 9) begin
            outside$d = ones << 9;
        end
        if (rest == 10) begin
            outside$d = ones << 10;
        end
        if (rest == 11) begin
            outside$d = ones << 11;
        end
        if (rest == 12) begin
            outside$d = ones << 12;
        end
        if (rest == 13) begin
            outside$d = ones << 13;
        end
        if (rest == 14) begin
            outside$d = ones << 14;
        end
        if (rest == 15) begin
            outside$d = ones << 15;
        end
        if (rest == 16) begin
            outside$d = ones << 16;
        end
        if (rest == 17) begin
            outside$d = ones << 17;
        end
        if (rest == 18) begin
            outside$d = ones << 18;
        end
        if (rest == 19) begin
            outside$d = ones << 19;
        end
        if (rest == 20) begin
            outside$d = ones << 20;
        end
        if (rest == 21) begin
            outside$d = ones << 21;
        end
        if (rest == 22) begin
            outside$d = ones << 22;
        end
        if (rest == 23) begin
            outside$d = ones << 23;
        end
        if (rest == 24) begin
            outside$d = ones << 24;
        end
        if (rest == 25) begin
            outside$d = ones << 25;
        end
        if (rest == 26) begin
            outside$d = ones << 26;
        end
        if (rest == 27) begin
            outside$d = ones << 27;
        end
        if (rest == 28) begin
            outside$d = ones << 28;
        end
        if (rest == 29) begin
            outside$d = ones << 29;
        end
        if (rest == 30) begin
            outside$d = ones << 30;
        end
        if (rest == 31) begin
            outside$d = ones << 31;
        end
        keep = ~outside$q;
        frame_len = padded_len$q;
        tos_high = ((template[(64'hc0)+:(8)]) & 16'hffff) << 32'h8;
        head[(64'h0)+:(16)] = template[(64'h0)+:(16)];
        head[(64'h10)+:(16)] = template[(64'h10)+:(16)];
        head[(64'h20)+:(16)] = template[(64'h20)+:(16)];
        head[(64'h30)+:(16)] = template[(64'h30)+:(16)];
        head[(64'h40)+:(16)] = template[(64'h40)+:(16)];
        head[(64'h50)+:(16)] = template[(64'h50)+:(16)];
        head[(64'h60)+:(16)] = 32'h8;
        head[(64'h70)+:(16)] = tos_high | 32'h45;
        head[(64'h80)+:(16)] = ip_swap$swapped;
        head[(64'h90)+:(16)] = 32'h0;
        head[(64'ha0)+:(16)] = 32'h40;
        head[(64'hb0)+:(16)] = 32'h1140;
        head[(64'hc0)+:(16)] = ~folded$q;
        head[(64'hd0)+:(16)] = template[(64'h60)+:(16)];
        head[(64'he0)+:(16)] = template[(64'h70)+:(16)];
        head[(64'hf0)+:(16)] = template[(64'h80)+:(16)];
        seg = info[(64'h0)+:(64)];
        tail[(64'h0)+:(16)] = 32'h0;
        tail[(64'h10)+:(16)] = 32'h0;
        tail[(64'h20)+:(16)] = 32'h0;
        tail[(64'h30)+:(16)] = 32'h0;
        tail[(64'h40)+:(16)] = 32'h0;
        tail[(64'h50)+:(16)] = 32'h0;
        tail[(64'h60)+:(16)] = 32'h0;
        tail[(64'h70)+:(16)] = template[(64'h90)+:(16)];
        tail[(64'h80)+:(16)] = template[(64'ha0)+:(16)];
        tail[(64'h90)+:(16)] = template[(64'hb0)+:(16)];
        tail[(64'ha0)+:(16)] = udp_swap$swapped;
        tail[(64'hb0)+:(16)] = 32'h0;
        tail[(64'hc0)+:(16)] = seg[(64'h0)+:(16)];
        tail[(64'hd0)+:(16)] = seg[(64'h10)+:(16)];
        tail[(64'he0)+:(16)] = seg[(64'h20)+:(16)];
        tail[(64'hf0)+:(16)] = seg[(64'h30)+:(16)];
    end
endmodule // iswitch_accel$datapath$output_module$header
module iswitch_accel$datapath$output_module$header$folded(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$header$folded
module iswitch_accel$datapath$output_module$header$ip_len(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$header$ip_len
module iswitch_accel$datapath$output_module$header$ip_swap(half,swapped);
    // Module arguments
    input wire  [15:0] half;
    output reg  [15:0] swapped;
    // Local signals
    reg  [15:0] low;
    reg  [15:0] high;
    // Update code
    always @(*) begin
        low = half >> 32'h8;
        high = half << 32'h8;
        swapped = low | high;
    end
endmodule // iswitch_accel$datapath$output_module$header$ip_swap
module iswitch_accel$datapath$output_module$header$natural_len(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$header$natural_len
module iswitch_accel$datapath$output_module$header$outside(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$header$outside
module iswitch_accel$datapath$output_module$header$padded_len(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$header$padded_len
module iswitch_accel$datapath$output_module$header$raw_sum(d,q,clock);
    // Module arguments
    input wire  [16:0] d;
    output reg  [16:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 17'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$header$raw_sum
module iswitch_accel$datapath$output_module$header$udp_len(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$header$udp_len
module iswitch_accel$datapath$output_module$header$udp_swap(half,swapped);
    // Module arguments
    input wire  [15:0] half;
    output reg  [15:0] swapped;
    // Local signals
    reg  [15:0] low;
    reg  [15:0] high;
    // Update code
    always @(*) begin
        low = half >> 32'h8;
        high = half << 32'h8;
        swapped = low | high;
    end
endmodule // iswitch_accel$datapath$output_module$header$udp_swap
module iswitch_accel$datapath$output_module$heads(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$heads
module iswitch_accel$datapath$output_module$held_info(d,q,clock);
    // Module arguments
    input wire  [72:0] d;
    output reg  [72:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 73'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$held_info
module iswitch_accel$datapath$output_module$held_template(d,q,clock);
    // Module arguments
    input wire  [223:0] d;
    output reg  [223:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 224'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$held_template
module iswitch_accel$datapath$output_module$is_free(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$is_free
module iswitch_accel$datapath$output_module$joined(earlier,later,head,heads,covers,beat,len,ports,user);
    // Module arguments
    input wire  [255:0] earlier;
    input wire  [255:0] later;
    input wire  [255:0] head;
    input wire  heads;
    input wire  covers;
    output reg  [255:0] beat;
    input wire  [15:0] len;
    input wire  [7:0] ports;
    output reg  [127:0] user;
    // Update code
    always @(*) begin
        beat[(64'h0)+:(16)] = earlier[(64'h70)+:(16)];
        beat[(64'h10)+:(16)] = earlier[(64'h80)+:(16)];
        beat[(64'h20)+:(16)] = earlier[(64'h90)+:(16)];
        beat[(64'h30)+:(16)] = earlier[(64'ha0)+:(16)];
        beat[(64'h40)+:(16)] = earlier[(64'hb0)+:(16)];
        beat[(64'h50)+:(16)] = earlier[(64'hc0)+:(16)];
        beat[(64'h60)+:(16)] = earlier[(64'hd0)+:(16)];
        beat[(64'h70)+:(16)] = earlier[(64'he0)+:(16)];
        beat[(64'h80)+:(16)] = earlier[(64'hf0)+:(16)];
        beat[(64'h90)+:(16)] = later[(64'h0)+:(16)];
        beat[(64'ha0)+:(16)] = later[(64'h10)+:(16)];
        beat[(64'hb0)+:(16)] = later[(64'h20)+:(16)];
        beat[(64'hc0)+:(16)] = later[(64'h30)+:(16)];
        beat[(64'hd0)+:(16)] = later[(64'h40)+:(16)];
        beat[(64'he0)+:(16)] = later[(64'h50)+:(16)];
        beat[(64'hf0)+:(16)] = later[(64'h60)+:(16)];
        if (heads) begin
            beat[(64'h0)+:(16)] = head[(64'h0)+:(16)];
            beat[(64'h10)+:(16)] = head[(64'h10)+:(16)];
            beat[(64'h20)+:(16)] = head[(64'h20)+:(16)];
            beat[(64'h30)+:(16)] = head[(64'h30)+:(16)];
            beat[(64'h40)+:(16)] = head[(64'h40)+:(16)];
            beat[(64'h50)+:(16)] = head[(64'h50)+:(16)];
            beat[(64'h60)+:(16)] = head[(64'h60)+:(16)];
            beat[(64'h70)+:(16)] = head[(64'h70)+:(16)];
            beat[(64'h80)+:(16)] = head[(64'h80)+:(16)];
        end
        if (covers) begin
            beat[(64'h90)+:(16)] = head[(64'h90)+:(16)];
            beat[(64'ha0)+:(16)] = head[(64'ha0)+:(16)];
            beat[(64'hb0)+:(16)] = head[(64'hb0)+:(16)];
            beat[(64'hc0)+:(16)] = head[(64'hc0)+:(16)];
            beat[(64'hd0)+:(16)] = head[(64'hd0)+:(16)];
            beat[(64'he0)+:(16)] = head[(64'he0)+:(16)];
            beat[(64'hf0)+:(16)] = head[(64'hf0)+:(16)];
        end
        user[(64'h0)+:(16)] = len;
        user[(64'h10)+:(8)] = 32'h0;
        user[(64'h18)+:(8)] = ports;
        user[(64'h20)+:(96)] = 32'h0;
    end
endmodule // iswitch_accel$datapath$output_module$joined
module iswitch_accel$datapath$output_module$left(d,q,clock);
    // Module arguments
    input wire  [5:0] d;
    output reg  [5:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 6'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$left
module iswitch_accel$datapath$output_module$spills(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$spills
module iswitch_accel$datapath$output_module$state(d,q,clock);
    // Module arguments
    input wire  [2:0] d;
    output reg  [2:0] q;
    input wire  clock;
    // Enums
    localparam OutputState$Idle = 0;
    localparam OutputState$Prepare = 1;
    localparam OutputState$Head = 2;
    localparam OutputState$Body = 3;
    localparam OutputState$Tail = 4;
    // Update code (custom)
    initial begin
       q = 64'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$state
module iswitch_accel$datapath$output_module$view(lanes,halves);
    // Module arguments
    input wire  [255:0] lanes;
    output reg  [255:0] halves;
    // Update code (custom)
    always @(*) halves = lanes;
endmodule // iswitch_accel$datapath$output_module$view
module iswitch_accel$datapath$output_module$waited(d,q,clock);
    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 2'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$output_module$waited
module iswitch_accel$datapath$places(clock,reset,data_in,push,data_out,valid,empty,pop,room);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [14:0] data_in;
    input wire  push;
    output reg  [14:0] data_out;
    output reg  valid;
    output reg  empty;
    input wire  pop;
    output reg  room;
    // Constant declarations
    localparam  limit = 8'h1a;
    // Stub signals
    reg  ram$clock;
    reg  [4:0] ram$write_address;
    reg  [14:0] ram$write_data;
    reg  ram$write_enable;
    reg  [4:0] ram$read_address;
    wire  [14:0] ram$read_data;
    reg  [4:0] write_at$d;
    wire  [4:0] write_at$q;
    reg  write_at$clock;
    reg  [4:0] read_at$d;
    wire  [4:0] read_at$q;
    reg  read_at$clock;
    reg  [7:0] count$d;
    wire  [7:0] count$q;
    reg  count$clock;
    reg  filled$d;
    wire  filled$q;
    reg  filled$clock;
    reg  is_empty$d;
    wire  is_empty$q;
    reg  is_empty$clock;
    reg  has_room$d;
    wire  has_room$q;
    reg  has_room$clock;
    // Local signals
    reg  [7:0] next_count;
    // Sub module instances
    iswitch_accel$datapath$places$ram ram(
        .clock(ram$clock),
        .write_address(ram$write_address),
        .write_data(ram$write_data),
        .write_enable(ram$write_enable),
        .read_address(ram$read_address),
        .read_data(ram$read_data)
    );
    iswitch_accel$datapath$places$write_at write_at(
        .d(write_at$d),
        .q(write_at$q),
        .clock(write_at$clock)
    );
    iswitch_accel$datapath$places$read_at read_at(
        .d(read_at$d),
        .q(read_at$q),
        .clock(read_at$clock)
    );
    iswitch_accel$datapath$places$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );
    iswitch_accel$datapath$places$filled filled(
        .d(filled$d),
        .q(filled$q),
        .clock(filled$clock)
    );
    iswitch_accel$datapath$places$is_empty is_empty(
        .d(is_empty$d),
        .q(is_empty$q),
        .clock(is_empty$clock)
    );
    iswitch_accel$datapath$places$has_room has_room(
        .d(has_room$d),
        .q(has_room$q),
        .clock(has_room$clock)
    );
    // Update code
    always @(*) begin
        write_at$clock = clock;
        read_at$clock = clock;
        count$clock = clock;
        filled$clock = clock;
        is_empty$clock = clock;
        has_room$clock = clock;
        write_at$d = write_at$q;
        read_at$d = read_at$q;
        count$d = count$q;
        filled$d = filled$q;
        is_empty$d = is_empty$q;
        has_room$d = has_room$q;
        ram$clock = clock;
        ram$write_address = write_at$q;
        ram$write_data = data_in;
        ram$write_enable = push;
        ram$read_address = read_at$q;
        data_out = ram$read_data;
        valid = filled$q;
        empty = is_empty$q;
        room = has_room$q;
        next_count = count$q + 32'h1;
        if (pop) begin
            next_count = count$q - 32'h1;
        end
        if (push) begin
            write_at$d = write_at$q + 32'h1;
        end
        if (pop) begin
            read_at$d = read_at$q + 32'h1;
        end
        if (push ^ pop) begin
            count$d = next_count;
        end
        if (pop) begin
            filled$d = count$q != 32'h1;
            is_empty$d = count$q == 32'h1;
        end
        if (push) begin
            filled$d = 1'b1;
            is_empty$d = 1'b0;
        end
        has_room$d = count$q < limit;
        if (reset) begin
            write_at$d = 32'h0;
            read_at$d = 32'h0;
            count$d = 32'h0;
            filled$d = 1'b0;
            is_empty$d = 1'b1;
            has_room$d = 1'b0;
        end
    end
endmodule // iswitch_accel$datapath$places
module iswitch_accel$datapath$places$count(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$places$count
module iswitch_accel$datapath$places$filled(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$places$filled
module iswitch_accel$datapath$places$has_room(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$places$has_room
module iswitch_accel$datapath$places$is_empty(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$places$is_empty
module iswitch_accel$datapath$places$ram(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [4:0] write_address;
    input wire  [14:0] write_data;
    input wire  write_enable;
    input wire  [4:0] read_address;
    output reg  [14:0] read_data;
    // Update code (custom)
    (* ram_style = "distributed" *) reg [14:0] words[31:0];
    integer i;
    initial for (i = 0; i <= 31; i = i + 1) words[i] = 0;
    always @(posedge clock) if (write_enable) words[write_address] <= write_data;
    always @(*) read_data = words[read_address];
endmodule // iswitch_accel$datapath$places$ram
module iswitch_accel$datapath$places$read_at(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$places$read_at
module iswitch_accel$datapath$places$write_at(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$places$write_at
module iswitch_accel$datapath$requests(clock,reset,clearing,job,halted,start_finish,finish_round,finish_first,data,finishing,late,late_push,control,budget,earns,exhausted,skips,busy,free,quiet,key,valid,idle,advance);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  clearing;
    input wire  [97:0] job;
    input wire  halted;
    input wire  start_finish;
    input wire  [23:0] finish_round;
    input wire  [23:0] finish_first;
    input wire  [31:0] data;
    output reg  finishing;
    input wire  [50:0] late;
    input wire  late_push;
    input wire  [260:0] control;
    input wire  [15:0] budget;
    input wire  earns;
    output reg  [7:0] exhausted;
    output reg  skips;
    output reg  busy;
    input wire  free;
    input wire  quiet;
    output reg  [87:0] key;
    output reg  valid;
    output reg  idle;
    input wire  advance;
    // Stub signals
    reg  walker$clock;
    reg  walker$reset;
    reg  walker$start;
    reg  [23:0] walker$round;
    reg  [23:0] walker$first;
    reg  [10:0] walker$count;
    reg  walker$only_complete;
    wire  walker$walking;
    wire  [87:0] walker$key;
    reg  walker$advance;
    reg  help$clock;
    reg  help$reset;
    reg  [97:0] help$job;
    reg  help$halted;
    reg  [260:0] help$control;
    wire  [185:0] help$request;
    wire  help$push;
    reg  repeater$clock;
    reg  repeater$reset;
    reg  [50:0] repeater$late;
    reg  repeater$late_push;
    reg  [185:0] repeater$help;
    reg  repeater$help_push;
    reg  [7:0] repeater$exhausted;
    wire  [87:0] repeater$key;
    wire  repeater$valid;
    reg  repeater$taken;
    wire  repeater$skips;
    wire  repeater$busy;
    reg  budgets$clock;
    reg  budgets$clear;
    reg  [15:0] budgets$limit;
    reg  budgets$spends;
    reg  [2:0] budgets$member;
    reg  budgets$earns;
    wire  [7:0] budgets$exhausted;
    reg  gate$clock;
    reg  gate$reset;
    reg  gate$free;
    reg  gate$quiet;
    reg  gate$withdraw;
    reg  [87:0] gate$finish_key;
    reg  gate$finish_valid;
    wire  gate$finish_taken;
    reg  [87:0] gate$repeat_key;
    reg  gate$repeat_valid;
    wire  gate$repeat_taken;
    wire  [87:0] gate$key;
    wire  gate$valid;
    wire  gate$idle;
    reg  gate$advance;
    // Sub module instances
    iswitch_accel$datapath$requests$walker walker(
        .clock(walker$clock),
        .reset(walker$reset),
        .start(walker$start),
        .round(walker$round),
        .first(walker$first),
        .count(walker$count),
        .only_complete(walker$only_complete),
        .walking(walker$walking),
        .key(walker$key),
        .advance(walker$advance)
    );
    iswitch_accel$datapath$requests$help help(
        .clock(help$clock),
        .reset(help$reset),
        .job(help$job),
        .halted(help$halted),
        .control(help$control),
        .request(help$request),
        .push(help$push)
    );
    iswitch_accel$datapath$requests$repeater repeater(
        .clock(repeater$clock),
        .reset(repeater$reset),
        .late(repeater$late),
        .late_push(repeater$late_push),
        .help(repeater$help),
        .help_push(repeater$help_push),
        .exhausted(repeater$exhausted),
        .key(repeater$key),
        .valid(repeater$valid),
        .taken(repeater$taken),
        .skips(repeater$skips),
        .busy(repeater$busy)
    );
    iswitch_accel$datapath$requests$budgets budgets(
        .clock(budgets$clock),
        .clear(budgets$clear),
        .limit(budgets$limit),
        .spends(budgets$spends),
        .member(budgets$member),
        .earns(budgets$earns),
        .exhausted(budgets$exhausted)
    );
    iswitch_accel$datapath$requests$gate gate(
        .clock(gate$clock),
        .reset(gate$reset),
        .free(gate$free),
        .quiet(gate$quiet),
        .withdraw(gate$withdraw),
        .finish_key(gate$finish_key),
        .finish_valid(gate$finish_valid),
        .finish_taken(gate$finish_taken),
        .repeat_key(gate$repeat_key),
        .repeat_valid(gate$repeat_valid),
        .repeat_taken(gate$repeat_taken),
        .key(gate$key),
        .valid(gate$valid),
        .idle(gate$idle),
        .advance(gate$advance)
    );
    // Update code
    always @(*) begin
        walker$clock = clock;
        help$clock = clock;
        repeater$clock = clock;
        budgets$clock = clock;
        gate$clock = clock;
        walker$reset = reset;
        help$reset = reset;
        gate$reset = reset;
        repeater$reset = reset | clearing;
        walker$start = start_finish;
        walker$round = finish_round;
        walker$first = finish_first;
        walker$count = data[(32'h0)+:(11)];
        walker$only_complete = data[32'h1f];
        walker$advance = gate$finish_taken;
        finishing = walker$walking;
        help$job = job;
        help$halted = halted;
        help$control = control;
        repeater$late = late;
        repeater$late_push = late_push;
        repeater$help = help$request;
        repeater$help_push = help$push;
        repeater$taken = gate$repeat_taken;
        repeater$exhausted = budgets$exhausted;
        skips = repeater$skips;
        busy = repeater$busy;
        budgets$clear = clearing;
        budgets$limit = budget;
        budgets$spends = gate$repeat_taken;
        budgets$member = repeater$key[(64'h50)+:(3)];
        budgets$earns = earns;
        exhausted = budgets$exhausted;
        gate$free = free;
        gate$withdraw = start_finish;
        gate$quiet = quiet;
        gate$finish_key = walker$key;
        gate$finish_valid = walker$walking;
        gate$repeat_key = repeater$key;
        gate$repeat_valid = repeater$valid;
        gate$advance = advance;
        key = gate$key;
        valid = gate$valid;
        idle = gate$idle;
    end
endmodule // iswitch_accel$datapath$requests
module iswitch_accel$datapath$requests$budgets(clock,clear,limit,spends,member,earns,exhausted);
    // Module arguments
    input wire  clock;
    input wire  clear;
    input wire  [15:0] limit;
    input wire  spends;
    input wire  [2:0] member;
    input wire  earns;
    output reg  [7:0] exhausted;
    // Stub signals
    reg  spent$clock;
    reg  [2:0] spent$write_address;
    reg  [15:0] spent$write_data;
    reg  spent$write_enable;
    reg  [2:0] spent$read_address;
    wire  [15:0] spent$read_data;
    reg  [2:0] at$d;
    wire  [2:0] at$q;
    reg  at$clock;
    reg  [2:0] was_at$d;
    wire  [2:0] was_at$q;
    reg  was_at$clock;
    reg  [15:0] held$d;
    wire  [15:0] held$q;
    reg  held$clock;
    reg  [7:0] pending$d;
    wire  [7:0] pending$q;
    reg  pending$clock;
    reg  has_spent$d;
    wire  has_spent$q;
    reg  has_spent$clock;
    reg  has_earned$d;
    wire  has_earned$q;
    reg  has_earned$clock;
    reg  [3:0] income$d;
    wire  [3:0] income$q;
    reg  income$clock;
    reg  [3:0] earned$d;
    wire  [3:0] earned$q;
    reg  earned$clock;
    reg  [19:0] ticks$d;
    wire  [19:0] ticks$q;
    reg  ticks$clock;
    reg  [15:0] written$d;
    wire  [15:0] written$q;
    reg  written$clock;
    reg  [7:0] checks$d;
    wire  [7:0] checks$q;
    reg  checks$clock;
    reg  [7:0] is_exhausted$d;
    wire  [7:0] is_exhausted$q;
    reg  is_exhausted$clock;
    reg  [7:0] was_own$d;
    wire  [7:0] was_own$q;
    reg  was_own$clock;
    reg  [15:0] change$d;
    wire  [15:0] change$q;
    reg  change$clock;
    // Local signals
    reg  [7:0] own;
    reg  [7:0] others;
    reg  [7:0] spender;
    reg  gains;
    reg  [15:0] less;
    reg  [15:0] next_less;
    reg  [15:0] count;
    // Sub module instances
    iswitch_accel$datapath$requests$budgets$spent spent(
        .clock(spent$clock),
        .write_address(spent$write_address),
        .write_data(spent$write_data),
        .write_enable(spent$write_enable),
        .read_address(spent$read_address),
        .read_data(spent$read_data)
    );
    iswitch_accel$datapath$requests$budgets$at at(
        .d(at$d),
        .q(at$q),
        .clock(at$clock)
    );
    iswitch_accel$datapath$requests$budgets$was_at was_at(
        .d(was_at$d),
        .q(was_at$q),
        .clock(was_at$clock)
    );
    iswitch_accel$datapath$requests$budgets$held held(
        .d(held$d),
        .q(held$q),
        .clock(held$clock)
    );
    iswitch_accel$datapath$requests$budgets$pending pending(
        .d(pending$d),
        .q(pending$q),
        .clock(pending$clock)
    );
    iswitch_accel$datapath$requests$budgets$has_spent has_spent(
        .d(has_spent$d),
        .q(has_spent$q),
        .clock(has_spent$clock)
    );
    iswitch_accel$datapath$requests$budgets$has_earned has_earned(
        .d(has_earned$d),
        .q(has_earned$q),
        .clock(has_earned$clock)
    );
    iswitch_accel$datapath$requests$budgets$income income(
        .d(income$d),
        .q(income$q),
        .clock(income$clock)
    );
    iswitch_accel$datapath$requests$budgets$earned earned(
        .d(earned$d),
        .q(earned$q),
        .clock(earned$clock)
    );
    iswitch_accel$datapath$requests$budgets$ticks ticks(
        .d(ticks$d),
        .q(ticks$q),
        .clock(ticks$clock)
    );
    iswitch_accel$datapath$requests$budgets$written written(
        .d(written$d),
        .q(written$q),
        .clock(written$clock)
    );
    iswitch_accel$datapath$requests$budgets$checks checks(
        .d(checks$d),
        .q(checks$q),
        .clock(checks$clock)
    );
    iswitch_accel$datapath$requests$budgets$is_exhausted is_exhausted(
        .d(is_exhausted$d),
        .q(is_exhausted$q),
        .clock(is_exhausted$clock)
    );
    iswitch_accel$datapath$requests$budgets$was_own was_own(
        .d(was_own$d),
        .q(was_own$q),
        .clock(was_own$clock)
    );
    iswitch_accel$datapath$requests$budgets$change change(
        .d(change$d),
        .q(change$q),
        .clock(change$clock)
    );
    // Update code
    always @(*) begin
        at$clock = clock;
        was_at$clock = clock;
        held$clock = clock;
        pending$clock = clock;
        has_spent$clock = clock;
        income$clock = clock;
        earned$clock = clock;
        ticks$clock = clock;
        is_exhausted$clock = clock;
        at$d = at$q;
        was_at$d = was_at$q;
        held$d = held$q;
        pending$d = pending$q;
        has_spent$d = has_spent$q;
        income$d = income$q;
        earned$d = earned$q;
        ticks$d = ticks$q;
        is_exhausted$d = is_exhausted$q;
        was_own$clock = clock;
        has_earned$clock = clock;
        written$clock = clock;
        checks$clock = clock;
        change$clock = clock;
        was_own$d = was_own$q;
        has_earned$d = has_earned$q;
        written$d = written$q;
        checks$d = checks$q;
        change$d = change$q;
        spent$clock = clock;
        ticks$d = ticks$q + 32'h1;
        has_earned$d = earns;
        gains = has_earned$q | &ticks$q;
        if (gains & ~&earned$q) begin
            earned$d = earned$q + 32'h1;
        end
        own = 32'h0;
        spender = 32'h0;
        if (at$q == 0) begin
            own = (64'h1 << 0);
        end
        if ((member == 0) & spends) begin
            spender = (64'h1 << 0);
        end
        if (at$q == 1) begin
            own = (64'h1 << 1);
        end
        if ((member == 1) & spends) begin
            spender = (64'h1 << 1);
        end
        if (at$q == 2) begin
            own = (64'h1 << 2);
        end
        if ((member == 2) & spends) begin
            spender = (64'h1 << 2);
        end
        if (at$q == 3) begin
            own = (64'h1 << 3);
        end
        if ((member == 3) & spends) begin
            spender = (64'h1 << 3);
        end
        if (at$q == 4) begin
            own = (64'h1 << 4);
        end
        if ((member == 4) & spends) begin
            spender = (64'h1 << 4);
        end
        if (at$q == 5) begin
            own = (64'h1 << 5);
        end
        if ((member == 5) & spends) begin
            spender = (64'h1 << 5);
        end
        if (at$q == 6) begin
            own = (64'h1 << 6);
        end
        if ((member == 6) & spends) begin
            spender = (64'h1 << 6);
        end
        if (at$q == 7) begin
            own = (64'h1 << 7);
        end
        if ((member == 7) & spends) begin
            spender = (64'h1 << 7);
        end
        at$d = at$q + 32'h1;
        was_at$d = at$q;
        was_own$d = own;
        spent$read_address = at$q;
        held$d = spent$read_data;
        has_spent$d = |(pending$q & own);
        pending$d = (pending$q & ~own) | spender;
        if (&was_at$q) begin
            income$d = earned$q;
            earned$d = 32'h0;
            if (gains) begin
                earned$d = 32'h1;
            end
        end
        less = ((income$q) & 16'hffff) << 32'h3;
        next_less = ((income$d) & 16'hffff) << 32'h3;
        change$d = next_less;
        if (has_spent$d) begin
            change$d = next_less - 32'h1;
        end
        count = 32'h0;
        if (has_spent$q) begin
            count = 32'h1;
        end
        if (held$q > less) begin
            count = held$q - change$q;
        end
        if (clear) begin
            count = 32'h0;
            pending$d = 32'h0;
            ticks$d = 32'h0;
        end
        spent$write_address = was_at$q;
        spent$write_data = count;
        spent$write_enable = 1'b1;
        written$d = count;
        checks$d = was_own$q;
        others = ~checks$q;
        is_exhausted$d = is_exhausted$q & others;
        if (written$q >= limit) begin
            is_exhausted$d = is_exhausted$q | checks$q;
        end
        exhausted = is_exhausted$q;
    end
endmodule // iswitch_accel$datapath$requests$budgets
module iswitch_accel$datapath$requests$budgets$at(d,q,clock);
    // Module arguments
    input wire  [2:0] d;
    output reg  [2:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 3'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$budgets$at
module iswitch_accel$datapath$requests$budgets$change(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$budgets$change
module iswitch_accel$datapath$requests$budgets$checks(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$budgets$checks
module iswitch_accel$datapath$requests$budgets$earned(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$budgets$earned
module iswitch_accel$datapath$requests$budgets$has_earned(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$budgets$has_earned
module iswitch_accel$datapath$requests$budgets$has_spent(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$budgets$has_spent
module iswitch_accel$datapath$requests$budgets$held(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$budgets$held
module iswitch_accel$datapath$requests$budgets$income(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$budgets$income
module iswitch_accel$datapath$requests$budgets$is_exhausted(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$budgets$is_exhausted
module iswitch_accel$datapath$requests$budgets$pending(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$budgets$pending
module iswitch_accel$datapath$requests$budgets$spent(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [2:0] write_address;
    input wire  [15:0] write_data;
    input wire  write_enable;
    input wire  [2:0] read_address;
    output reg  [15:0] read_data;
    // Update code (custom)
    (* ram_style = "distributed" *) reg [15:0] words[7:0];
    integer i;
    initial for (i = 0; i <= 7; i = i + 1) words[i] = 0;
    always @(posedge clock) if (write_enable) words[write_address] <= write_data;
    always @(*) read_data = words[read_address];
endmodule // iswitch_accel$datapath$requests$budgets$spent
module iswitch_accel$datapath$requests$budgets$ticks(d,q,clock);
    // Module arguments
    input wire  [19:0] d;
    output reg  [19:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 20'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$budgets$ticks
module iswitch_accel$datapath$requests$budgets$was_at(d,q,clock);
    // Module arguments
    input wire  [2:0] d;
    output reg  [2:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 3'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$budgets$was_at
module iswitch_accel$datapath$requests$budgets$was_own(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$budgets$was_own
module iswitch_accel$datapath$requests$budgets$written(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$budgets$written
module iswitch_accel$datapath$requests$gate(clock,reset,free,quiet,withdraw,finish_key,finish_valid,finish_taken,repeat_key,repeat_valid,repeat_taken,key,valid,idle,advance);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  free;
    input wire  quiet;
    input wire  withdraw;
    input wire  [87:0] finish_key;
    input wire  finish_valid;
    output reg  finish_taken;
    input wire  [87:0] repeat_key;
    input wire  repeat_valid;
    output reg  repeat_taken;
    output reg  [87:0] key;
    output reg  valid;
    output reg  idle;
    input wire  advance;
    // Stub signals
    reg  offers$d;
    wire  offers$q;
    reg  offers$clock;
    reg  rests$d;
    wire  rests$q;
    reg  rests$clock;
    reg  repeats$d;
    wire  repeats$q;
    reg  repeats$clock;
    reg  [3:0] pause$d;
    wire  [3:0] pause$q;
    reg  pause$clock;
    // Local signals
    reg  waits;
    reg  repeat_waits;
    // Sub module instances
    iswitch_accel$datapath$requests$gate$offers offers(
        .d(offers$d),
        .q(offers$q),
        .clock(offers$clock)
    );
    iswitch_accel$datapath$requests$gate$rests rests(
        .d(rests$d),
        .q(rests$q),
        .clock(rests$clock)
    );
    iswitch_accel$datapath$requests$gate$repeats repeats(
        .d(repeats$d),
        .q(repeats$q),
        .clock(repeats$clock)
    );
    iswitch_accel$datapath$requests$gate$pause pause(
        .d(pause$d),
        .q(pause$q),
        .clock(pause$clock)
    );
    // Update code
    always @(*) begin
        offers$clock = clock;
        rests$clock = clock;
        repeats$clock = clock;
        pause$clock = clock;
        offers$d = offers$q;
        rests$d = rests$q;
        repeats$d = repeats$q;
        pause$d = pause$q;
        key = finish_key;
        if (repeats$q) begin
            key = repeat_key;
        end
        valid = offers$q;
        idle = rests$q;
        finish_taken = advance & ~repeats$q;
        repeat_taken = advance & repeats$q;
        repeat_waits = repeat_valid & quiet;
        waits = finish_valid | repeat_waits;
        if (offers$q) begin
            waits = finish_valid;
            if (repeats$q) begin
                waits = repeat_waits;
            end
        end
        else begin
            repeats$d = ~finish_valid;
        end
        offers$d = waits & free & ~|pause$q;
        if (|pause$q) begin
            pause$d = pause$q - 32'h1;
        end
        if (advance) begin
            offers$d = 1'b0;
            pause$d = 32'hf;
        end
        if (withdraw) begin
            offers$d = 1'b0;
        end
        if (reset) begin
            offers$d = 1'b0;
            pause$d = 32'h0;
        end
        rests$d = ~offers$d;
    end
endmodule // iswitch_accel$datapath$requests$gate
module iswitch_accel$datapath$requests$gate$offers(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$gate$offers
module iswitch_accel$datapath$requests$gate$pause(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$gate$pause
module iswitch_accel$datapath$requests$gate$repeats(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$gate$repeats
module iswitch_accel$datapath$requests$gate$rests(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$gate$rests
module iswitch_accel$datapath$requests$help(clock,reset,job,halted,control,request,push);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [97:0] job;
    input wire  halted;
    input wire  [260:0] control;
    output reg  [185:0] request;
    output reg  push;
    // Stub signals
    reg  [1:0] at$d;
    wire  [1:0] at$q;
    reg  at$clock;
    reg  is_help$d;
    wire  is_help$q;
    reg  is_help$clock;
    reg  [23:0] round$d;
    wire  [23:0] round$q;
    reg  round$clock;
    reg  [23:0] first$d;
    wire  [23:0] first$q;
    reg  first$clock;
    reg  [15:0] count$d;
    wire  [15:0] count$q;
    reg  count$clock;
    reg  [15:0] udp_len$d;
    wire  [15:0] udp_len$q;
    reg  udp_len$clock;
    reg  [127:0] wanted$d;
    wire  [127:0] wanted$q;
    reg  wanted$clock;
    reg  [2:0] asker$d;
    wire  [2:0] asker$q;
    reg  asker$clock;
    reg  complete$d;
    wire  complete$q;
    reg  complete$clock;
    reg  was_complete$d;
    wire  was_complete$q;
    reg  was_complete$clock;
    reg  is_allowed$d;
    wire  is_allowed$q;
    reg  is_allowed$clock;
    reg  [16:0] room$d;
    wire  [16:0] room$q;
    reg  room$clock;
    reg  [24:0] range_end$d;
    wire  [24:0] range_end$q;
    reg  range_end$clock;
    reg  [15:0] swapped$half;
    wire  [15:0] swapped$swapped;
    // Local signals
    reg  [255:0] beat;
    reg  [127:0] half$0;
    reg  [127:0] half$1;
    reg  [127:0] half$2;
    reg  [127:0] half$3;
    reg  [127:0] half$4;
    reg  [127:0] half$5;
    reg  [127:0] half$6;
    reg  [127:0] half$7;
    reg  [31:0] job_id;
    reg  [31:0] packet_id;
    reg  [23:0] high;
    reg  [23:0] other_high;
    reg  [15:0] middle;
    reg  [15:0] other_middle;
    reg  [15:0] before_last;
    reg  [19:0] bits;
    reg  allowed;
    // Sub module instances
    iswitch_accel$datapath$requests$help$at at(
        .d(at$d),
        .q(at$q),
        .clock(at$clock)
    );
    iswitch_accel$datapath$requests$help$is_help is_help(
        .d(is_help$d),
        .q(is_help$q),
        .clock(is_help$clock)
    );
    iswitch_accel$datapath$requests$help$round round(
        .d(round$d),
        .q(round$q),
        .clock(round$clock)
    );
    iswitch_accel$datapath$requests$help$first first(
        .d(first$d),
        .q(first$q),
        .clock(first$clock)
    );
    iswitch_accel$datapath$requests$help$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );
    iswitch_accel$datapath$requests$help$udp_len udp_len(
        .d(udp_len$d),
        .q(udp_len$q),
        .clock(udp_len$clock)
    );
    iswitch_accel$datapath$requests$help$wanted wanted(
        .d(wanted$d),
        .q(wanted$q),
        .clock(wanted$clock)
    );
    iswitch_accel$datapath$requests$help$asker asker(
        .d(asker$d),
        .q(asker$q),
        .clock(asker$clock)
    );
    iswitch_accel$datapath$requests$help$complete complete(
        .d(complete$d),
        .q(complete$q),
        .clock(complete$clock)
    );
    iswitch_accel$datapath$requests$help$was_complete was_complete(
        .d(was_complete$d),
        .q(was_complete$q),
        .clock(was_complete$clock)
    );
    iswitch_accel$datapath$requests$help$is_allowed is_allowed(
        .d(is_allowed$d),
        .q(is_allowed$q),
        .clock(is_allowed$clock)
    );
    iswitch_accel$datapath$requests$help$room room(
        .d(room$d),
        .q(room$q),
        .clock(room$clock)
    );
    iswitch_accel$datapath$requests$help$range_end range_end(
        .d(range_end$d),
        .q(range_end$q),
        .clock(range_end$clock)
    );
    iswitch_accel$datapath$requests$help$swapped swapped(
        .half(swapped$half),
        .swapped(swapped$swapped)
    );
    // Update code
    always @(*) begin
        at$clock = clock;
        is_help$clock = clock;
        round$clock = clock;
        first$clock = clock;
        count$clock = clock;
        udp_len$clock = clock;
        wanted$clock = clock;
        asker$clock = clock;
        at$d = at$q;
        is_help$d = is_help$q;
        round$d = round$q;
        first$d = first$q;
        count$d = count$q;
        udp_len$d = udp_len$q;
        wanted$d = wanted$q;
        asker$d = asker$q;
        complete$clock = clock;
        was_complete$clock = clock;
        is_allowed$clock = clock;
        room$clock = clock;
        range_end$clock = clock;
        complete$d = complete$q;
        was_complete$d = was_complete$q;
        is_allowed$d = is_allowed$q;
        room$d = room$q;
        range_end$d = range_end$q;
        beat = control[(64'h0)+:(256)];
        job_id = job[(64'h42)+:(32)];
        packet_id = ((beat[(64'h70)+:(16)]) & 32'hffffffff) | (((beat[(64'h80)+:(16)]) & 32'hffffffff) << 32'h10);
        middle = beat[(64'hc0)+:(16)];
        other_middle = beat[(64'he0)+:(16)];
        high = ((middle[(32'h0)+:(8)]) & 24'hffffff) << 32'h10;
        other_high = ((other_middle[(32'h0)+:(8)]) & 24'hffffff) << 32'h10;
        swapped$half = beat[(64'h30)+:(16)];
        if (at$q == 32'h1) begin
            is_help$d = (beat[(64'h50)+:(16)] == 32'h106) & (beat[(64'h60)+:(16)] == 32'h0) & (packet_id == job_id) & ~|middle[(32'h8)+:(8)] & ~|other_middle[(32'h8)+:(8)];
            round$d = ((beat[(64'hb0)+:(16)]) & 24'hffffff) | high;
            first$d = ((beat[(64'hd0)+:(16)]) & 24'hffffff) | other_high;
            count$d = beat[(64'hf0)+:(16)];
            udp_len$d = swapped$swapped;
            asker$d = control[(64'h102)+:(3)];
        end
        half$0 = ((beat[(64'h10)+:(16)]) & 128'hffffffffffffffffffffffffffffffff);
        half$1 = ((beat[(64'h20)+:(16)]) & 128'hffffffffffffffffffffffffffffffff) << 32'h10;
        half$2 = ((beat[(64'h30)+:(16)]) & 128'hffffffffffffffffffffffffffffffff) << 32'h20;
        half$3 = ((beat[(64'h40)+:(16)]) & 128'hffffffffffffffffffffffffffffffff) << 32'h30;
        half$4 = ((beat[(64'h50)+:(16)]) & 128'hffffffffffffffffffffffffffffffff) << 32'h40;
        half$5 = ((beat[(64'h60)+:(16)]) & 128'hffffffffffffffffffffffffffffffff) << 32'h50;
        half$6 = ((beat[(64'h70)+:(16)]) & 128'hffffffffffffffffffffffffffffffff) << 32'h60;
        half$7 = ((beat[(64'h80)+:(16)]) & 128'hffffffffffffffffffffffffffffffff) << 32'h70;
        if (at$q == 32'h2) begin
            wanted$d = half$0 | half$1 | half$2 | half$3 | half$4 | half$5 | half$6 | half$7;
        end
        complete$d = control[(64'h100)+:(1)] & (at$q == 32'h2) & (beat[(64'h0)+:(16)] == 32'h0) & is_help$q & |count$q & ~reset;
        if (control[(64'h100)+:(1)]) begin
            if (~&at$q) begin
                at$d = at$q + 32'h1;
            end
            if (control[(64'h101)+:(1)]) begin
                at$d = 32'h0;
            end
        end
        if (reset) begin
            at$d = 32'h0;
        end
        room$d = ((udp_len$q) & 17'h1ffff) - 32'h20;
        before_last = count$q - 32'h1;
        range_end$d = ((first$q) & 25'h1ffffff) + ((before_last) & 25'h1ffffff);
        bits = ((room$q) & 20'hfffff) << 32'h3;
        allowed = ~halted & ~room$q[32'h10] & (bits >= ((count$q) & 20'hfffff)) & (count$q <= 32'h400) & (range_end$q <= ((job[(64'h18)+:(24)]) & 25'h1ffffff));
        is_allowed$d = allowed;
        was_complete$d = complete$q & ~reset;
        push = was_complete$q & is_allowed$q;
        request[(64'h0)+:(24)] = first$q;
        request[(64'h18)+:(24)] = round$q;
        request[(64'h30)+:(7)] = before_last[(32'h0)+:(7)];
        if (|before_last[(32'h7)+:(9)]) begin
            request[(64'h30)+:(7)] = 32'h7f;
        end
        request[(64'h37)+:(3)] = asker$q;
        request[(64'h3a)+:(128)] = wanted$q;
    end
endmodule // iswitch_accel$datapath$requests$help
module iswitch_accel$datapath$requests$help$asker(d,q,clock);
    // Module arguments
    input wire  [2:0] d;
    output reg  [2:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 3'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$help$asker
module iswitch_accel$datapath$requests$help$at(d,q,clock);
    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 2'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$help$at
module iswitch_accel$datapath$requests$help$complete(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$help$complete
module iswitch_accel$datapath$requests$help$count(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$help$count
module iswitch_accel$datapath$requests$help$first(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$help$first
module iswitch_accel$datapath$requests$help$is_allowed(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$help$is_allowed
module iswitch_accel$datapath$requests$help$is_help(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$help$is_help
module iswitch_accel$datapath$requests$help$range_end(d,q,clock);
    // Module arguments
    input wire  [24:0] d;
    output reg  [24:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 25'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$help$range_end
module iswitch_accel$datapath$requests$help$room(d,q,clock);
    // Module arguments
    input wire  [16:0] d;
    output reg  [16:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 17'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$help$room
module iswitch_accel$datapath$requests$help$round(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$help$round
module iswitch_accel$datapath$requests$help$swapped(half,swapped);
    // Module arguments
    input wire  [15:0] half;
    output reg  [15:0] swapped;
    // Local signals
    reg  [15:0] low;
    reg  [15:0] high;
    // Update code
    always @(*) begin
        low = half >> 32'h8;
        high = half << 32'h8;
        swapped = low | high;
    end
endmodule // iswitch_accel$datapath$requests$help$swapped
module iswitch_accel$datapath$requests$help$udp_len(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$help$udp_len
module iswitch_accel$datapath$requests$help$wanted(d,q,clock);
    // Module arguments
    input wire  [127:0] d;
    output reg  [127:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 128'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$help$wanted
module iswitch_accel$datapath$requests$help$was_complete(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$help$was_complete
module iswitch_accel$datapath$requests$repeater(clock,reset,late,late_push,help,help_push,exhausted,key,valid,taken,skips,busy);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [50:0] late;
    input wire  late_push;
    input wire  [185:0] help;
    input wire  help_push;
    input wire  [7:0] exhausted;
    output reg  [87:0] key;
    output reg  valid;
    input wire  taken;
    output reg  skips;
    output reg  busy;
    // Stub signals
    reg  lates$clock;
    reg  lates$reset;
    reg  [50:0] lates$data_in;
    reg  lates$push;
    wire  [50:0] lates$data_out;
    wire  lates$valid;
    wire  lates$empty;
    reg  lates$pop;
    wire  lates$room;
    reg  helps$clock;
    reg  helps$reset;
    reg  [185:0] helps$data_in;
    reg  helps$push;
    wire  [185:0] helps$data_out;
    wire  helps$valid;
    wire  helps$empty;
    reg  helps$pop;
    wire  helps$room;
    reg  [50:0] request$d;
    wire  [50:0] request$q;
    reg  request$clock;
    reg  waits$d;
    wire  waits$q;
    reg  waits$clock;
    reg  of_help$d;
    wire  of_help$q;
    reg  of_help$clock;
    reg  checked$d;
    wire  checked$q;
    reg  checked$clock;
    reg  over$d;
    wire  over$q;
    reg  over$clock;
    reg  walking$d;
    wire  walking$q;
    reg  walking$clock;
    reg  [23:0] index$d;
    wire  [23:0] index$q;
    reg  index$clock;
    reg  [6:0] at$d;
    wire  [6:0] at$q;
    reg  at$clock;
    reg  [31:0] part$d;
    wire  [31:0] part$q;
    reg  part$clock;
    reg  looks$d;
    wire  looks$q;
    reg  looks$clock;
    reg  is_wanted$d;
    wire  is_wanted$q;
    reg  is_wanted$clock;
    reg  ends$d;
    wire  ends$q;
    reg  ends$clock;
    reg  looked$d;
    wire  looked$q;
    reg  looked$clock;
    // Local signals
    reg  [127:0] wanted;
    reg  [31:0] shifted;
    reg  loads_help;
    reg  steps;
    reg  concludes;
    reg  [2:0] asker;
    reg  is_over;
    reg  overflows;
    reg  discards;
    // Sub module instances
    iswitch_accel$datapath$requests$repeater$lates lates(
        .clock(lates$clock),
        .reset(lates$reset),
        .data_in(lates$data_in),
        .push(lates$push),
        .data_out(lates$data_out),
        .valid(lates$valid),
        .empty(lates$empty),
        .pop(lates$pop),
        .room(lates$room)
    );
    iswitch_accel$datapath$requests$repeater$helps helps(
        .clock(helps$clock),
        .reset(helps$reset),
        .data_in(helps$data_in),
        .push(helps$push),
        .data_out(helps$data_out),
        .valid(helps$valid),
        .empty(helps$empty),
        .pop(helps$pop),
        .room(helps$room)
    );
    iswitch_accel$datapath$requests$repeater$request request(
        .d(request$d),
        .q(request$q),
        .clock(request$clock)
    );
    iswitch_accel$datapath$requests$repeater$waits waits(
        .d(waits$d),
        .q(waits$q),
        .clock(waits$clock)
    );
    iswitch_accel$datapath$requests$repeater$of_help of_help(
        .d(of_help$d),
        .q(of_help$q),
        .clock(of_help$clock)
    );
    iswitch_accel$datapath$requests$repeater$checked checked(
        .d(checked$d),
        .q(checked$q),
        .clock(checked$clock)
    );
    iswitch_accel$datapath$requests$repeater$over over(
        .d(over$d),
        .q(over$q),
        .clock(over$clock)
    );
    iswitch_accel$datapath$requests$repeater$walking walking(
        .d(walking$d),
        .q(walking$q),
        .clock(walking$clock)
    );
    iswitch_accel$datapath$requests$repeater$index index(
        .d(index$d),
        .q(index$q),
        .clock(index$clock)
    );
    iswitch_accel$datapath$requests$repeater$at at(
        .d(at$d),
        .q(at$q),
        .clock(at$clock)
    );
    iswitch_accel$datapath$requests$repeater$part part(
        .d(part$d),
        .q(part$q),
        .clock(part$clock)
    );
    iswitch_accel$datapath$requests$repeater$looks looks(
        .d(looks$d),
        .q(looks$q),
        .clock(looks$clock)
    );
    iswitch_accel$datapath$requests$repeater$is_wanted is_wanted(
        .d(is_wanted$d),
        .q(is_wanted$q),
        .clock(is_wanted$clock)
    );
    iswitch_accel$datapath$requests$repeater$ends ends(
        .d(ends$d),
        .q(ends$q),
        .clock(ends$clock)
    );
    iswitch_accel$datapath$requests$repeater$looked looked(
        .d(looked$d),
        .q(looked$q),
        .clock(looked$clock)
    );
    // Update code
    always @(*) begin
        request$clock = clock;
        waits$clock = clock;
        of_help$clock = clock;
        checked$clock = clock;
        over$clock = clock;
        walking$clock = clock;
        index$clock = clock;
        at$clock = clock;
        part$clock = clock;
        looks$clock = clock;
        is_wanted$clock = clock;
        ends$clock = clock;
        looked$clock = clock;
        request$d = request$q;
        waits$d = waits$q;
        of_help$d = of_help$q;
        checked$d = checked$q;
        over$d = over$q;
        walking$d = walking$q;
        index$d = index$q;
        at$d = at$q;
        part$d = part$q;
        looks$d = looks$q;
        is_wanted$d = is_wanted$q;
        ends$d = ends$q;
        looked$d = looked$q;
        lates$clock = clock;
        helps$clock = clock;
        lates$reset = reset;
        helps$reset = reset;
        lates$data_in = late;
        helps$data_in = help;
        lates$push = late_push & lates$room;
        helps$push = help_push & helps$room;
        overflows = (late_push & ~lates$room) | (help_push & ~helps$room);
        busy = lates$valid | helps$valid | waits$q;
        asker = request$q[(64'h30)+:(3)];
        is_over = 1'b0;
        if ((asker == 0) & exhausted[0]) begin
            is_over = 1'b1;
        end
        if ((asker == 1) & exhausted[1]) begin
            is_over = 1'b1;
        end
        if ((asker == 2) & exhausted[2]) begin
            is_over = 1'b1;
        end
        if ((asker == 3) & exhausted[3]) begin
            is_over = 1'b1;
        end
        if ((asker == 4) & exhausted[4]) begin
            is_over = 1'b1;
        end
        if ((asker == 5) & exhausted[5]) begin
            is_over = 1'b1;
        end
        if ((asker == 6) & exhausted[6]) begin
            is_over = 1'b1;
        end
        if ((asker == 7) & exhausted[7]) begin
            is_over = 1'b1;
        end
        over$d = is_over;
        valid = checked$q & ~over$q;
        discards = checked$q & over$q;
        skips = overflows | discards;
        concludes = taken | discards;
        checked$d = waits$q & ~concludes;
        if (concludes) begin
            waits$d = 1'b0;
        end
        loads_help = ~waits$q & ~lates$valid & looked$q & is_wanted$q;
        lates$pop = ~waits$q & lates$valid;
        if (lates$pop | loads_help) begin
            waits$d = 1'b1;
        end
        if (~waits$q) begin
            request$d = lates$data_out;
            of_help$d = ~lates$valid;
            if (~lates$valid) begin
                request$d[(64'h0)+:(24)] = index$q;
                request$d[(64'h18)+:(24)] = helps$data_out[(64'h18)+:(24)];
                request$d[(64'h30)+:(3)] = helps$data_out[(64'h37)+:(3)];
            end
        end
        wanted = helps$data_out[(64'h3a)+:(128)];
        part$d = wanted[(32'h0)+:(32)];
        if (at$q[(32'h5)+:(2)] == 32'h1) begin
            part$d = wanted[(32'h20)+:(32)];
        end
        if (at$q[(32'h5)+:(2)] == 32'h2) begin
            part$d = wanted[(32'h40)+:(32)];
        end
        if (at$q[(32'h5)+:(2)] == 32'h3) begin
            part$d = wanted[(32'h60)+:(32)];
        end
        shifted = part$q >> ((at$q[(32'h0)+:(5)]) & 32'hffffffff);
        is_wanted$d = shifted[32'h0];
        ends$d = at$q == helps$data_out[(64'h30)+:(7)];
        steps = looked$q & (~is_wanted$q | loads_help);
        looks$d = walking$q & ~steps;
        looked$d = looks$d & looks$q;
        helps$pop = steps & ends$q;
        if (steps) begin
            index$d = index$q + 32'h1;
            at$d = at$q + 32'h1;
        end
        if (helps$pop) begin
            walking$d = 1'b0;
        end
        if (~walking$q) begin
            walking$d = helps$valid;
            index$d = helps$data_out[(64'h0)+:(24)];
            at$d = 32'h0;
        end
        if (reset) begin
            waits$d = 1'b0;
            checked$d = 1'b0;
            walking$d = 1'b0;
            looks$d = 1'b0;
            looked$d = 1'b0;
        end
        key[(64'h0)+:(24)] = request$q[(64'h0)+:(24)];
        key[(64'h18)+:(24)] = request$q[(64'h18)+:(24)];
        key[(64'h30)+:(16)] = 32'h0;
        key[(64'h40)+:(16)] = 32'h0;
        key[(64'h50)+:(3)] = asker;
        key[(64'h53)+:(1)] = 1'b1;
        key[(64'h54)+:(1)] = 1'b0;
        key[(64'h55)+:(1)] = 1'b1;
        key[(64'h56)+:(1)] = of_help$q;
        key[(64'h57)+:(1)] = 1'b1;
    end
endmodule // iswitch_accel$datapath$requests$repeater
module iswitch_accel$datapath$requests$repeater$at(d,q,clock);
    // Module arguments
    input wire  [6:0] d;
    output reg  [6:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 7'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$at
module iswitch_accel$datapath$requests$repeater$checked(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$checked
module iswitch_accel$datapath$requests$repeater$ends(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$ends
module iswitch_accel$datapath$requests$repeater$helps(clock,reset,data_in,push,data_out,valid,empty,pop,room);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [185:0] data_in;
    input wire  push;
    output reg  [185:0] data_out;
    output reg  valid;
    output reg  empty;
    input wire  pop;
    output reg  room;
    // Constant declarations
    localparam  limit = 8'h7;
    // Stub signals
    reg  ram$clock;
    reg  [2:0] ram$write_address;
    reg  [185:0] ram$write_data;
    reg  ram$write_enable;
    reg  [2:0] ram$read_address;
    wire  [185:0] ram$read_data;
    reg  [2:0] write_at$d;
    wire  [2:0] write_at$q;
    reg  write_at$clock;
    reg  [2:0] read_at$d;
    wire  [2:0] read_at$q;
    reg  read_at$clock;
    reg  [7:0] count$d;
    wire  [7:0] count$q;
    reg  count$clock;
    reg  filled$d;
    wire  filled$q;
    reg  filled$clock;
    reg  is_empty$d;
    wire  is_empty$q;
    reg  is_empty$clock;
    reg  has_room$d;
    wire  has_room$q;
    reg  has_room$clock;
    // Local signals
    reg  [7:0] next_count;
    // Sub module instances
    iswitch_accel$datapath$requests$repeater$helps$ram ram(
        .clock(ram$clock),
        .write_address(ram$write_address),
        .write_data(ram$write_data),
        .write_enable(ram$write_enable),
        .read_address(ram$read_address),
        .read_data(ram$read_data)
    );
    iswitch_accel$datapath$requests$repeater$helps$write_at write_at(
        .d(write_at$d),
        .q(write_at$q),
        .clock(write_at$clock)
    );
    iswitch_accel$datapath$requests$repeater$helps$read_at read_at(
        .d(read_at$d),
        .q(read_at$q),
        .clock(read_at$clock)
    );
    iswitch_accel$datapath$requests$repeater$helps$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );
    iswitch_accel$datapath$requests$repeater$helps$filled filled(
        .d(filled$d),
        .q(filled$q),
        .clock(filled$clock)
    );
    iswitch_accel$datapath$requests$repeater$helps$is_empty is_empty(
        .d(is_empty$d),
        .q(is_empty$q),
        .clock(is_empty$clock)
    );
    iswitch_accel$datapath$requests$repeater$helps$has_room has_room(
        .d(has_room$d),
        .q(has_room$q),
        .clock(has_room$clock)
    );
    // Update code
    always @(*) begin
        write_at$clock = clock;
        read_at$clock = clock;
        count$clock = clock;
        filled$clock = clock;
        is_empty$clock = clock;
        has_room$clock = clock;
        write_at$d = write_at$q;
        read_at$d = read_at$q;
        count$d = count$q;
        filled$d = filled$q;
        is_empty$d = is_empty$q;
        has_room$d = has_room$q;
        ram$clock = clock;
        ram$write_address = write_at$q;
        ram$write_data = data_in;
        ram$write_enable = push;
        ram$read_address = read_at$q;
        data_out = ram$read_data;
        valid = filled$q;
        empty = is_empty$q;
        room = has_room$q;
        next_count = count$q + 32'h1;
        if (pop) begin
            next_count = count$q - 32'h1;
        end
        if (push) begin
            write_at$d = write_at$q + 32'h1;
        end
        if (pop) begin
            read_at$d = read_at$q + 32'h1;
        end
        if (push ^ pop) begin
            count$d = next_count;
        end
        if (pop) begin
            filled$d = count$q != 32'h1;
            is_empty$d = count$q == 32'h1;
        end
        if (push) begin
            filled$d = 1'b1;
            is_empty$d = 1'b0;
        end
        has_room$d = count$q < limit;
        if (reset) begin
            write_at$d = 32'h0;
            read_at$d = 32'h0;
            count$d = 32'h0;
            filled$d = 1'b0;
            is_empty$d = 1'b1;
            has_room$d = 1'b0;
        end
    end
endmodule // iswitch_accel$datapath$requests$repeater$helps
module iswitch_accel$datapath$requests$repeater$helps$count(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$helps$count
module iswitch_accel$datapath$requests$repeater$helps$filled(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$helps$filled
module iswitch_accel$datapath$requests$repeater$helps$has_room(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$helps$has_room
module iswitch_accel$datapath$requests$repeater$helps$is_empty(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$helps$is_empty
module iswitch_accel$datapath$requests$repeater$helps$ram(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [2:0] write_address;
    input wire  [185:0] write_data;
    input wire  write_enable;
    input wire  [2:0] read_address;
    output reg  [185:0] read_data;
    // Update code (custom)
    (* ram_style = "distributed" *) reg [185:0] words[7:0];
    integer i;
    initial for (i = 0; i <= 7; i = i + 1) words[i] = 0;
    always @(posedge clock) if (write_enable) words[write_address] <= write_data;
    always @(*) read_data = words[read_address];
endmodule // iswitch_accel$datapath$requests$repeater$helps$ram
module iswitch_accel$datapath$requests$repeater$helps$read_at(d,q,clock);
    // Module arguments
    input wire  [2:0] d;
    output reg  [2:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 3'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$helps$read_at
module iswitch_accel$datapath$requests$repeater$helps$write_at(d,q,clock);
    // Module arguments
    input wire  [2:0] d;
    output reg  [2:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 3'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$helps$write_at
module iswitch_accel$datapath$requests$repeater$index(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$index
module iswitch_accel$datapath$requests$repeater$is_wanted(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$is_wanted
module iswitch_accel$datapath$requests$repeater$lates(clock,reset,data_in,push,data_out,valid,empty,pop,room);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [50:0] data_in;
    input wire  push;
    output reg  [50:0] data_out;
    output reg  valid;
    output reg  empty;
    input wire  pop;
    output reg  room;
    // Constant declarations
    localparam  limit = 8'hf;
    // Stub signals
    reg  ram$clock;
    reg  [3:0] ram$write_address;
    reg  [50:0] ram$write_data;
    reg  ram$write_enable;
    reg  [3:0] ram$read_address;
    wire  [50:0] ram$read_data;
    reg  [3:0] write_at$d;
    wire  [3:0] write_at$q;
    reg  write_at$clock;
    reg  [3:0] read_at$d;
    wire  [3:0] read_at$q;
    reg  read_at$clock;
    reg  [7:0] count$d;
    wire  [7:0] count$q;
    reg  count$clock;
    reg  filled$d;
    wire  filled$q;
    reg  filled$clock;
    reg  is_empty$d;
    wire  is_empty$q;
    reg  is_empty$clock;
    reg  has_room$d;
    wire  has_room$q;
    reg  has_room$clock;
    // Local signals
    reg  [7:0] next_count;
    // Sub module instances
    iswitch_accel$datapath$requests$repeater$lates$ram ram(
        .clock(ram$clock),
        .write_address(ram$write_address),
        .write_data(ram$write_data),
        .write_enable(ram$write_enable),
        .read_address(ram$read_address),
        .read_data(ram$read_data)
    );
    iswitch_accel$datapath$requests$repeater$lates$write_at write_at(
        .d(write_at$d),
        .q(write_at$q),
        .clock(write_at$clock)
    );
    iswitch_accel$datapath$requests$repeater$lates$read_at read_at(
        .d(read_at$d),
        .q(read_at$q),
        .clock(read_at$clock)
    );
    iswitch_accel$datapath$requests$repeater$lates$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );
    iswitch_accel$datapath$requests$repeater$lates$filled filled(
        .d(filled$d),
        .q(filled$q),
        .clock(filled$clock)
    );
    iswitch_accel$datapath$requests$repeater$lates$is_empty is_empty(
        .d(is_empty$d),
        .q(is_empty$q),
        .clock(is_empty$clock)
    );
    iswitch_accel$datapath$requests$repeater$lates$has_room has_room(
        .d(has_room$d),
        .q(has_room$q),
        .clock(has_room$clock)
    );
    // Update code
    always @(*) begin
        write_at$clock = clock;
        read_at$clock = clock;
        count$clock = clock;
        filled$clock = clock;
        is_empty$clock = clock;
        has_room$clock = clock;
        write_at$d = write_at$q;
        read_at$d = read_at$q;
        count$d = count$q;
        filled$d = filled$q;
        is_empty$d = is_empty$q;
        has_room$d = has_room$q;
        ram$clock = clock;
        ram$write_address = write_at$q;
        ram$write_data = data_in;
        ram$write_enable = push;
        ram$read_address = read_at$q;
        data_out = ram$read_data;
        valid = filled$q;
        empty = is_empty$q;
        room = has_room$q;
        next_count = count$q + 32'h1;
        if (pop) begin
            next_count = count$q - 32'h1;
        end
        if (push) begin
            write_at$d = write_at$q + 32'h1;
        end
        if (pop) begin
            read_at$d = read_at$q + 32'h1;
        end
        if (push ^ pop) begin
            count$d = next_count;
        end
        if (pop) begin
            filled$d = count$q != 32'h1;
            is_empty$d = count$q == 32'h1;
        end
        if (push) begin
            filled$d = 1'b1;
            is_empty$d = 1'b0;
        end
        has_room$d = count$q < limit;
        if (reset) begin
            write_at$d = 32'h0;
            read_at$d = 32'h0;
            count$d = 32'h0;
            filled$d = 1'b0;
            is_empty$d = 1'b1;
            has_room$d = 1'b0;
        end
    end
endmodule // iswitch_accel$datapath$requests$repeater$lates
module iswitch_accel$datapath$requests$repeater$lates$count(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$lates$count
module iswitch_accel$datapath$requests$repeater$lates$filled(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$lates$filled
module iswitch_accel$datapath$requests$repeater$lates$has_room(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$lates$has_room
module iswitch_accel$datapath$requests$repeater$lates$is_empty(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$lates$is_empty
module iswitch_accel$datapath$requests$repeater$lates$ram(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [3:0] write_address;
    input wire  [50:0] write_data;
    input wire  write_enable;
    input wire  [3:0] read_address;
    output reg  [50:0] read_data;
    // Update code (custom)
    (* ram_style = "distributed" *) reg [50:0] words[15:0];
    integer i;
    initial for (i = 0; i <= 15; i = i + 1) words[i] = 0;
    always @(posedge clock) if (write_enable) words[write_address] <= write_data;
    always @(*) read_data = words[read_address];
endmodule // iswitch_accel$datapath$requests$repeater$lates$ram
module iswitch_accel$datapath$requests$repeater$lates$read_at(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$lates$read_at
module iswitch_accel$datapath$requests$repeater$lates$write_at(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$lates$write_at
module iswitch_accel$datapath$requests$repeater$looked(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$looked
module iswitch_accel$datapath$requests$repeater$looks(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$looks
module iswitch_accel$datapath$requests$repeater$of_help(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$of_help
module iswitch_accel$datapath$requests$repeater$over(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$over
module iswitch_accel$datapath$requests$repeater$part(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$part
module iswitch_accel$datapath$requests$repeater$request(d,q,clock);
    // Module arguments
    input wire  [50:0] d;
    output reg  [50:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 51'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$request
module iswitch_accel$datapath$requests$repeater$waits(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$waits
module iswitch_accel$datapath$requests$repeater$walking(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$repeater$walking
module iswitch_accel$datapath$requests$walker(clock,reset,start,round,first,count,only_complete,walking,key,advance);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  start;
    input wire  [23:0] round;
    input wire  [23:0] first;
    input wire  [10:0] count;
    input wire  only_complete;
    output reg  walking;
    output reg  [87:0] key;
    input wire  advance;
    // Stub signals
    reg  [23:0] held_round$d;
    wire  [23:0] held_round$q;
    reg  held_round$clock;
    reg  [23:0] index$d;
    wire  [23:0] index$q;
    reg  index$clock;
    reg  [10:0] left$d;
    wire  [10:0] left$q;
    reg  left$clock;
    reg  held_only$d;
    wire  held_only$q;
    reg  held_only$clock;
    reg  busy$d;
    wire  busy$q;
    reg  busy$clock;
    // Sub module instances
    iswitch_accel$datapath$requests$walker$held_round held_round(
        .d(held_round$d),
        .q(held_round$q),
        .clock(held_round$clock)
    );
    iswitch_accel$datapath$requests$walker$index index(
        .d(index$d),
        .q(index$q),
        .clock(index$clock)
    );
    iswitch_accel$datapath$requests$walker$left left(
        .d(left$d),
        .q(left$q),
        .clock(left$clock)
    );
    iswitch_accel$datapath$requests$walker$held_only held_only(
        .d(held_only$d),
        .q(held_only$q),
        .clock(held_only$clock)
    );
    iswitch_accel$datapath$requests$walker$busy busy(
        .d(busy$d),
        .q(busy$q),
        .clock(busy$clock)
    );
    // Update code
    always @(*) begin
        held_round$clock = clock;
        index$clock = clock;
        left$clock = clock;
        held_only$clock = clock;
        busy$clock = clock;
        held_round$d = held_round$q;
        index$d = index$q;
        left$d = left$q;
        held_only$d = held_only$q;
        busy$d = busy$q;
        walking = busy$q;
        if (advance) begin
            index$d = index$q + 32'h1;
            left$d = left$q - 32'h1;
            busy$d = left$q != 32'h1;
        end
        if (start) begin
            held_round$d = round;
            index$d = first;
            left$d = count;
            busy$d = |count;
            held_only$d = only_complete;
        end
        if (reset) begin
            left$d = 32'h0;
            busy$d = 1'b0;
        end
        key[(64'h0)+:(24)] = index$q;
        key[(64'h18)+:(24)] = held_round$q;
        key[(64'h30)+:(16)] = 32'h0;
        key[(64'h40)+:(16)] = 32'h0;
        key[(64'h50)+:(3)] = 32'h0;
        key[(64'h53)+:(1)] = 1'b1;
        key[(64'h54)+:(1)] = 1'b0;
        key[(64'h55)+:(1)] = 1'b1;
        key[(64'h56)+:(1)] = held_only$q;
        key[(64'h57)+:(1)] = 1'b0;
    end
endmodule // iswitch_accel$datapath$requests$walker
module iswitch_accel$datapath$requests$walker$busy(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$walker$busy
module iswitch_accel$datapath$requests$walker$held_only(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$walker$held_only
module iswitch_accel$datapath$requests$walker$held_round(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$walker$held_round
module iswitch_accel$datapath$requests$walker$index(d,q,clock);
    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 24'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$walker$index
module iswitch_accel$datapath$requests$walker$left(d,q,clock);
    // Module arguments
    input wire  [10:0] d;
    output reg  [10:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 11'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$requests$walker$left
module iswitch_accel$datapath$results(clock,reset,data_in,push,data_out,valid,empty,pop,room);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [72:0] data_in;
    input wire  push;
    output reg  [72:0] data_out;
    output reg  valid;
    output reg  empty;
    input wire  pop;
    output reg  room;
    // Constant declarations
    localparam  limit = 8'hc;
    // Stub signals
    reg  ram$clock;
    reg  [3:0] ram$write_address;
    reg  [72:0] ram$write_data;
    reg  ram$write_enable;
    reg  [3:0] ram$read_address;
    wire  [72:0] ram$read_data;
    reg  [3:0] write_at$d;
    wire  [3:0] write_at$q;
    reg  write_at$clock;
    reg  [3:0] read_at$d;
    wire  [3:0] read_at$q;
    reg  read_at$clock;
    reg  [7:0] count$d;
    wire  [7:0] count$q;
    reg  count$clock;
    reg  filled$d;
    wire  filled$q;
    reg  filled$clock;
    reg  is_empty$d;
    wire  is_empty$q;
    reg  is_empty$clock;
    reg  has_room$d;
    wire  has_room$q;
    reg  has_room$clock;
    // Local signals
    reg  [7:0] next_count;
    // Sub module instances
    iswitch_accel$datapath$results$ram ram(
        .clock(ram$clock),
        .write_address(ram$write_address),
        .write_data(ram$write_data),
        .write_enable(ram$write_enable),
        .read_address(ram$read_address),
        .read_data(ram$read_data)
    );
    iswitch_accel$datapath$results$write_at write_at(
        .d(write_at$d),
        .q(write_at$q),
        .clock(write_at$clock)
    );
    iswitch_accel$datapath$results$read_at read_at(
        .d(read_at$d),
        .q(read_at$q),
        .clock(read_at$clock)
    );
    iswitch_accel$datapath$results$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );
    iswitch_accel$datapath$results$filled filled(
        .d(filled$d),
        .q(filled$q),
        .clock(filled$clock)
    );
    iswitch_accel$datapath$results$is_empty is_empty(
        .d(is_empty$d),
        .q(is_empty$q),
        .clock(is_empty$clock)
    );
    iswitch_accel$datapath$results$has_room has_room(
        .d(has_room$d),
        .q(has_room$q),
        .clock(has_room$clock)
    );
    // Update code
    always @(*) begin
        write_at$clock = clock;
        read_at$clock = clock;
        count$clock = clock;
        filled$clock = clock;
        is_empty$clock = clock;
        has_room$clock = clock;
        write_at$d = write_at$q;
        read_at$d = read_at$q;
        count$d = count$q;
        filled$d = filled$q;
        is_empty$d = is_empty$q;
        has_room$d = has_room$q;
        ram$clock = clock;
        ram$write_address = write_at$q;
        ram$write_data = data_in;
        ram$write_enable = push;
        ram$read_address = read_at$q;
        data_out = ram$read_data;
        valid = filled$q;
        empty = is_empty$q;
        room = has_room$q;
        next_count = count$q + 32'h1;
        if (pop) begin
            next_count = count$q - 32'h1;
        end
        if (push) begin
            write_at$d = write_at$q + 32'h1;
        end
        if (pop) begin
            read_at$d = read_at$q + 32'h1;
        end
        if (push ^ pop) begin
            count$d = next_count;
        end
        if (pop) begin
            filled$d = count$q != 32'h1;
            is_empty$d = count$q == 32'h1;
        end
        if (push) begin
            filled$d = 1'b1;
            is_empty$d = 1'b0;
        end
        has_room$d = count$q < limit;
        if (reset) begin
            write_at$d = 32'h0;
            read_at$d = 32'h0;
            count$d = 32'h0;
            filled$d = 1'b0;
            is_empty$d = 1'b1;
            has_room$d = 1'b0;
        end
    end
endmodule // iswitch_accel$datapath$results
module iswitch_accel$datapath$results$count(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$results$count
module iswitch_accel$datapath$results$filled(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$results$filled
module iswitch_accel$datapath$results$has_room(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$results$has_room
module iswitch_accel$datapath$results$is_empty(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$results$is_empty
module iswitch_accel$datapath$results$ram(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [3:0] write_address;
    input wire  [72:0] write_data;
    input wire  write_enable;
    input wire  [3:0] read_address;
    output reg  [72:0] read_data;
    // Update code (custom)
    (* ram_style = "distributed" *) reg [72:0] words[15:0];
    integer i;
    initial for (i = 0; i <= 15; i = i + 1) words[i] = 0;
    always @(posedge clock) if (write_enable) words[write_address] <= write_data;
    always @(*) read_data = words[read_address];
endmodule // iswitch_accel$datapath$results$ram
module iswitch_accel$datapath$results$read_at(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$results$read_at
module iswitch_accel$datapath$results$write_at(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$results$write_at
module iswitch_accel$datapath$separator(clock,reset,decision,decision_valid,decision_pop,flit,flit_valid,flit_absent,flit_pop,bypass_valid,bypass_ready,bypass_copied,control,burst,burst_push,burst_room);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [33:0] decision;
    input wire  decision_valid;
    output reg  decision_pop;
    input wire  [416:0] flit;
    input wire  flit_valid;
    input wire  flit_absent;
    output reg  flit_pop;
    output reg  bypass_valid;
    input wire  bypass_ready;
    output reg  bypass_copied;
    output reg  [260:0] control;
    output reg  [272:0] burst;
    output reg  burst_push;
    input wire  burst_room;
    // Stub signals
    reg  slicer$clock;
    reg  [255:0] slicer$data;
    reg  slicer$take;
    reg  slicer$cut;
    reg  [2:0] slicer$tail;
    reg  slicer$blank;
    wire  [255:0] slicer$lanes;
    reg  busy$d;
    wire  busy$q;
    reg  busy$clock;
    reg  [33:0] current$d;
    wire  [33:0] current$q;
    reg  current$clock;
    reg  bypasses$d;
    wire  bypasses$q;
    reg  bypasses$clock;
    reg  drops$d;
    wire  drops$q;
    reg  drops$clock;
    reg  adds$d;
    wire  adds$q;
    reg  adds$clock;
    reg  forced$d;
    wire  forced$q;
    reg  forced$clock;
    reg  [33:0] upcoming$d;
    wire  [33:0] upcoming$q;
    reg  upcoming$clock;
    reg  knows_upcoming$d;
    wire  knows_upcoming$q;
    reg  knows_upcoming$clock;
    reg  [1:0] beat$d;
    wire  [1:0] beat$q;
    reg  beat$clock;
    reg  active$d;
    wire  active$q;
    reg  active$clock;
    reg  [33:0] segment$d;
    wire  [33:0] segment$q;
    reg  segment$clock;
    reg  [14:0] address$d;
    wire  [14:0] address$q;
    reg  address$clock;
    reg  [5:0] left$d;
    wire  [5:0] left$q;
    reg  left$clock;
    reg  flush$d;
    wire  flush$q;
    reg  flush$clock;
    reg  [255:0] arrived$d;
    wire  [255:0] arrived$q;
    reg  arrived$clock;
    reg  taken$d;
    wire  taken$q;
    reg  taken$clock;
    reg  passed$d;
    wire  passed$q;
    reg  passed$clock;
    reg  passed_last$d;
    wire  passed_last$q;
    reg  passed_last$clock;
    reg  [2:0] passed_member$d;
    wire  [2:0] passed_member$q;
    reg  passed_member$clock;
    reg  making$d;
    wire  making$q;
    reg  making$clock;
    reg  [14:0] making_address$d;
    wire  [14:0] making_address$q;
    reg  making_address$clock;
    reg  [33:0] making_segment$d;
    wire  [33:0] making_segment$q;
    reg  making_segment$clock;
    reg  made$d;
    wire  made$q;
    reg  made$clock;
    reg  made_first$d;
    wire  made_first$q;
    reg  made_first$clock;
    reg  made_last$d;
    wire  made_last$q;
    reg  made_last$clock;
    reg  [14:0] made_address$d;
    wire  [14:0] made_address$q;
    reg  made_address$clock;
    reg  ends$d;
    wire  ends$q;
    reg  ends$clock;
    // Local signals
    reg  may_take;
    reg  take;
    reg  sums;
    reg  forces;
    reg  finished;
    reg  advances;
    reg  emit;
    reg  begins;
    // Sub module instances
    iswitch_accel$datapath$separator$slicer slicer(
        .clock(slicer$clock),
        .data(slicer$data),
        .take(slicer$take),
        .cut(slicer$cut),
        .tail(slicer$tail),
        .blank(slicer$blank),
        .lanes(slicer$lanes)
    );
    iswitch_accel$datapath$separator$busy busy(
        .d(busy$d),
        .q(busy$q),
        .clock(busy$clock)
    );
    iswitch_accel$datapath$separator$current current(
        .d(current$d),
        .q(current$q),
        .clock(current$clock)
    );
    iswitch_accel$datapath$separator$bypasses bypasses(
        .d(bypasses$d),
        .q(bypasses$q),
        .clock(bypasses$clock)
    );
    iswitch_accel$datapath$separator$drops drops(
        .d(drops$d),
        .q(drops$q),
        .clock(drops$clock)
    );
    iswitch_accel$datapath$separator$adds adds(
        .d(adds$d),
        .q(adds$q),
        .clock(adds$clock)
    );
    iswitch_accel$datapath$separator$forced forced(
        .d(forced$d),
        .q(forced$q),
        .clock(forced$clock)
    );
    iswitch_accel$datapath$separator$upcoming upcoming(
        .d(upcoming$d),
        .q(upcoming$q),
        .clock(upcoming$clock)
    );
    iswitch_accel$datapath$separator$knows_upcoming knows_upcoming(
        .d(knows_upcoming$d),
        .q(knows_upcoming$q),
        .clock(knows_upcoming$clock)
    );
    iswitch_accel$datapath$separator$beat beat(
        .d(beat$d),
        .q(beat$q),
        .clock(beat$clock)
    );
    iswitch_accel$datapath$separator$active active(
        .d(active$d),
        .q(active$q),
        .clock(active$clock)
    );
    iswitch_accel$datapath$separator$segment segment(
        .d(segment$d),
        .q(segment$q),
        .clock(segment$clock)
    );
    iswitch_accel$datapath$separator$address address(
        .d(address$d),
        .q(address$q),
        .clock(address$clock)
    );
    iswitch_accel$datapath$separator$left left(
        .d(left$d),
        .q(left$q),
        .clock(left$clock)
    );
    iswitch_accel$datapath$separator$flush flush(
        .d(flush$d),
        .q(flush$q),
        .clock(flush$clock)
    );
    iswitch_accel$datapath$separator$arrived arrived(
        .d(arrived$d),
        .q(arrived$q),
        .clock(arrived$clock)
    );
    iswitch_accel$datapath$separator$taken taken(
        .d(taken$d),
        .q(taken$q),
        .clock(taken$clock)
    );
    iswitch_accel$datapath$separator$passed passed(
        .d(passed$d),
        .q(passed$q),
        .clock(passed$clock)
    );
    iswitch_accel$datapath$separator$passed_last passed_last(
        .d(passed_last$d),
        .q(passed_last$q),
        .clock(passed_last$clock)
    );
    iswitch_accel$datapath$separator$passed_member passed_member(
        .d(passed_member$d),
        .q(passed_member$q),
        .clock(passed_member$clock)
    );
    iswitch_accel$datapath$separator$making making(
        .d(making$d),
        .q(making$q),
        .clock(making$clock)
    );
    iswitch_accel$datapath$separator$making_address making_address(
        .d(making_address$d),
        .q(making_address$q),
        .clock(making_address$clock)
    );
    iswitch_accel$datapath$separator$making_segment making_segment(
        .d(making_segment$d),
        .q(making_segment$q),
        .clock(making_segment$clock)
    );
    iswitch_accel$datapath$separator$made made(
        .d(made$d),
        .q(made$q),
        .clock(made$clock)
    );
    iswitch_accel$datapath$separator$made_first made_first(
        .d(made_first$d),
        .q(made_first$q),
        .clock(made_first$clock)
    );
    iswitch_accel$datapath$separator$made_last made_last(
        .d(made_last$d),
        .q(made_last$q),
        .clock(made_last$clock)
    );
    iswitch_accel$datapath$separator$made_address made_address(
        .d(made_address$d),
        .q(made_address$q),
        .clock(made_address$clock)
    );
    iswitch_accel$datapath$separator$ends ends(
        .d(ends$d),
        .q(ends$q),
        .clock(ends$clock)
    );
    // Update code
    always @(*) begin
        busy$clock = clock;
        current$clock = clock;
        beat$clock = clock;
        active$clock = clock;
        segment$clock = clock;
        address$clock = clock;
        left$clock = clock;
        flush$clock = clock;
        ends$clock = clock;
        busy$d = busy$q;
        current$d = current$q;
        beat$d = beat$q;
        active$d = active$q;
        segment$d = segment$q;
        address$d = address$q;
        left$d = left$q;
        flush$d = flush$q;
        ends$d = ends$q;
        upcoming$clock = clock;
        knows_upcoming$clock = clock;
        arrived$clock = clock;
        taken$clock = clock;
        making$clock = clock;
        making_address$clock = clock;
        making_segment$clock = clock;
        upcoming$d = upcoming$q;
        knows_upcoming$d = knows_upcoming$q;
        arrived$d = arrived$q;
        taken$d = taken$q;
        making$d = making$q;
        making_address$d = making_address$q;
        making_segment$d = making_segment$q;
        made$clock = clock;
        made_first$clock = clock;
        made_last$clock = clock;
        made_address$clock = clock;
        bypasses$clock = clock;
        drops$clock = clock;
        adds$clock = clock;
        forced$clock = clock;
        made$d = made$q;
        made_first$d = made_first$q;
        made_last$d = made_last$q;
        made_address$d = made_address$q;
        bypasses$d = bypasses$q;
        drops$d = drops$q;
        adds$d = adds$q;
        forced$d = forced$q;
        passed$clock = clock;
        passed_last$clock = clock;
        passed_member$clock = clock;
        passed$d = passed$q;
        passed_last$d = passed_last$q;
        passed_member$d = passed_member$q;
        slicer$clock = clock;
        bypass_valid = bypasses$q & flit_valid;
        bypass_copied = current$q[(64'h1d)+:(1)];
        sums = adds$q & flit_valid & burst_room;
        forces = forced$q & burst_room & ~flush$q;
        may_take = (adds$q & burst_room) | (bypasses$q & bypass_ready) | drops$q;
        take = may_take & flit_valid;
        flit_pop = take;
        passed$d = bypass_valid & bypass_ready & current$q[(64'h1e)+:(1)] & ~reset;
        passed_last$d = flit[(64'h1a0)+:(1)];
        passed_member$d = current$q[(64'h1f)+:(3)];
        control[(64'h0)+:(256)] = arrived$q;
        control[(64'h100)+:(1)] = passed$q;
        control[(64'h101)+:(1)] = passed_last$q;
        control[(64'h102)+:(3)] = passed_member$q;
        emit = active$q & ((flush$q & burst_room) | (sums & beat$q[32'h1]) | forces);
        finished = (may_take & ~flit_absent & flit[(64'h1a0)+:(1)]) | (forces & active$q & ends$q);
        decision_pop = decision_valid & ~knows_upcoming$q;
        advances = ~busy$q | finished;
        if (take & ~beat$q[32'h1]) begin
            beat$d = beat$q + 32'h1;
        end
        if (finished) begin
            beat$d = 32'h0;
        end
        if (advances) begin
            busy$d = knows_upcoming$q;
            current$d = upcoming$q;
            bypasses$d = knows_upcoming$q & upcoming$q[(64'h0)+:(1)];
            drops$d = knows_upcoming$q & upcoming$q[(64'h1)+:(1)];
            forced$d = knows_upcoming$q & upcoming$q[(64'h2)+:(1)];
            adds$d = knows_upcoming$q & ~upcoming$q[(64'h0)+:(1)] & ~upcoming$q[(64'h1)+:(1)] & ~upcoming$q[(64'h2)+:(1)];
            knows_upcoming$d = 1'b0;
        end
        if (decision_pop) begin
            knows_upcoming$d = 1'b1;
            upcoming$d = decision;
        end
        if (emit) begin
            left$d = left$q - 32'h1;
            address$d = address$q + 32'h2;
            ends$d = left$q == 32'h1;
            if (ends$q) begin
                active$d = 1'b0;
                flush$d = 1'b0;
            end
        end
        begins = (sums & beat$q[32'h0]) | (forces & ~active$q);
        if (begins) begin
            active$d = 1'b1;
            segment$d = current$q;
            address$d = current$q[(64'h5)+:(15)];
            left$d = current$q[(64'h14)+:(6)];
            ends$d = current$q[(64'h14)+:(6)] == 32'h0;
        end
        if (sums & flit[(64'h1a0)+:(1)]) begin
            flush$d = begins | (active$q & ~ends$q);
        end
        if (reset) begin
            busy$d = 1'b0;
            bypasses$d = 1'b0;
            drops$d = 1'b0;
            adds$d = 1'b0;
            forced$d = 1'b0;
            knows_upcoming$d = 1'b0;
            active$d = 1'b0;
            flush$d = 1'b0;
            beat$d = 32'h0;
        end
        arrived$d = flit[(64'h0)+:(256)];
        taken$d = sums;
        making$d = emit & ~reset;
        making_segment$d = segment$q;
        making_address$d = address$q;
        slicer$data = arrived$q;
        slicer$take = taken$q;
        slicer$cut = ends$q;
        slicer$tail = segment$q[(64'h1a)+:(3)];
        slicer$blank = segment$q[(64'h2)+:(1)];
        made$d = making$q & ~reset;
        made_first$d = making_segment$q[(64'h3)+:(1)];
        made_last$d = making_segment$q[(64'h4)+:(1)];
        made_address$d = making_address$q;
        burst_push = made$q;
        burst[(64'h0)+:(256)] = slicer$lanes;
        burst[(64'h100)+:(15)] = made_address$q;
        burst[(64'h10f)+:(1)] = made_first$q;
        burst[(64'h110)+:(1)] = made_last$q;
    end
endmodule // iswitch_accel$datapath$separator
module iswitch_accel$datapath$separator$active(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$active
module iswitch_accel$datapath$separator$address(d,q,clock);
    // Module arguments
    input wire  [14:0] d;
    output reg  [14:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 15'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$address
module iswitch_accel$datapath$separator$adds(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$adds
module iswitch_accel$datapath$separator$arrived(d,q,clock);
    // Module arguments
    input wire  [255:0] d;
    output reg  [255:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 256'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$arrived
module iswitch_accel$datapath$separator$beat(d,q,clock);
    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 2'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$beat
module iswitch_accel$datapath$separator$busy(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$busy
module iswitch_accel$datapath$separator$bypasses(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$bypasses
module iswitch_accel$datapath$separator$current(d,q,clock);
    // Module arguments
    input wire  [33:0] d;
    output reg  [33:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 34'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$current
module iswitch_accel$datapath$separator$drops(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$drops
module iswitch_accel$datapath$separator$ends(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$ends
module iswitch_accel$datapath$separator$flush(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$flush
module iswitch_accel$datapath$separator$forced(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$forced
module iswitch_accel$datapath$separator$knows_upcoming(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$knows_upcoming
module iswitch_accel$datapath$separator$left(d,q,clock);
    // Module arguments
    input wire  [5:0] d;
    output reg  [5:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 6'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$left
module iswitch_accel$datapath$separator$made(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$made
module iswitch_accel$datapath$separator$made_address(d,q,clock);
    // Module arguments
    input wire  [14:0] d;
    output reg  [14:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 15'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$made_address
module iswitch_accel$datapath$separator$made_first(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$made_first
module iswitch_accel$datapath$separator$made_last(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$made_last
module iswitch_accel$datapath$separator$making(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$making
module iswitch_accel$datapath$separator$making_address(d,q,clock);
    // Module arguments
    input wire  [14:0] d;
    output reg  [14:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 15'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$making_address
module iswitch_accel$datapath$separator$making_segment(d,q,clock);
    // Module arguments
    input wire  [33:0] d;
    output reg  [33:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 34'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$making_segment
module iswitch_accel$datapath$separator$passed(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$passed
module iswitch_accel$datapath$separator$passed_last(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$passed_last
module iswitch_accel$datapath$separator$passed_member(d,q,clock);
    // Module arguments
    input wire  [2:0] d;
    output reg  [2:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 3'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$passed_member
module iswitch_accel$datapath$separator$segment(d,q,clock);
    // Module arguments
    input wire  [33:0] d;
    output reg  [33:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 34'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$segment
module iswitch_accel$datapath$separator$slicer(clock,data,take,cut,tail,blank,lanes);
    // Module arguments
    input wire  clock;
    input wire  [255:0] data;
    input wire  take;
    input wire  cut;
    input wire  [2:0] tail;
    input wire  blank;
    output reg  [255:0] lanes;
    // Stub signals
    reg  [255:0] held$d;
    wire  [255:0] held$q;
    reg  held$clock;
    reg  [255:0] floats$halves;
    wire  [255:0] floats$lanes;
    reg  [255:0] out_lanes$d;
    wire  [255:0] out_lanes$q;
    reg  out_lanes$clock;
    reg  zero$0$d;
    wire  zero$0$q;
    reg  zero$0$clock;
    reg  zero$1$d;
    wire  zero$1$q;
    reg  zero$1$clock;
    reg  zero$2$d;
    wire  zero$2$q;
    reg  zero$2$clock;
    reg  zero$3$d;
    wire  zero$3$q;
    reg  zero$3$clock;
    reg  zero$4$d;
    wire  zero$4$q;
    reg  zero$4$clock;
    reg  zero$5$d;
    wire  zero$5$q;
    reg  zero$5$clock;
    reg  zero$6$d;
    wire  zero$6$q;
    reg  zero$6$clock;
    reg  zero$7$d;
    wire  zero$7$q;
    reg  zero$7$clock;
    // Local signals
    reg  [255:0] joined;
    // Sub module instances
    iswitch_accel$datapath$separator$slicer$held held(
        .d(held$d),
        .q(held$q),
        .clock(held$clock)
    );
    iswitch_accel$datapath$separator$slicer$floats floats(
        .halves(floats$halves),
        .lanes(floats$lanes)
    );
    iswitch_accel$datapath$separator$slicer$out_lanes out_lanes(
        .d(out_lanes$d),
        .q(out_lanes$q),
        .clock(out_lanes$clock)
    );
    iswitch_accel$datapath$separator$slicer$zero$0 zero$0(
        .d(zero$0$d),
        .q(zero$0$q),
        .clock(zero$0$clock)
    );
    iswitch_accel$datapath$separator$slicer$zero$1 zero$1(
        .d(zero$1$d),
        .q(zero$1$q),
        .clock(zero$1$clock)
    );
    iswitch_accel$datapath$separator$slicer$zero$2 zero$2(
        .d(zero$2$d),
        .q(zero$2$q),
        .clock(zero$2$clock)
    );
    iswitch_accel$datapath$separator$slicer$zero$3 zero$3(
        .d(zero$3$d),
        .q(zero$3$q),
        .clock(zero$3$clock)
    );
    iswitch_accel$datapath$separator$slicer$zero$4 zero$4(
        .d(zero$4$d),
        .q(zero$4$q),
        .clock(zero$4$clock)
    );
    iswitch_accel$datapath$separator$slicer$zero$5 zero$5(
        .d(zero$5$d),
        .q(zero$5$q),
        .clock(zero$5$clock)
    );
    iswitch_accel$datapath$separator$slicer$zero$6 zero$6(
        .d(zero$6$d),
        .q(zero$6$q),
        .clock(zero$6$clock)
    );
    iswitch_accel$datapath$separator$slicer$zero$7 zero$7(
        .d(zero$7$d),
        .q(zero$7$q),
        .clock(zero$7$clock)
    );
    // Update code
    always @(*) begin
        held$clock = clock;
        out_lanes$clock = clock;
        held$d = held$q;
        out_lanes$d = out_lanes$q;
        if (take) begin
            held$d = data;
        end
        joined[(64'h0)+:(16)] = held$q[(64'h90)+:(16)];
        joined[(64'h10)+:(16)] = held$q[(64'ha0)+:(16)];
        joined[(64'h20)+:(16)] = held$q[(64'hb0)+:(16)];
        joined[(64'h30)+:(16)] = held$q[(64'hc0)+:(16)];
        joined[(64'h40)+:(16)] = held$q[(64'hd0)+:(16)];
        joined[(64'h50)+:(16)] = held$q[(64'he0)+:(16)];
        joined[(64'h60)+:(16)] = held$q[(64'hf0)+:(16)];
        joined[(64'h70)+:(16)] = data[(64'h0)+:(16)];
        joined[(64'h80)+:(16)] = data[(64'h10)+:(16)];
        joined[(64'h90)+:(16)] = data[(64'h20)+:(16)];
        joined[(64'ha0)+:(16)] = data[(64'h30)+:(16)];
        joined[(64'hb0)+:(16)] = data[(64'h40)+:(16)];
        joined[(64'hc0)+:(16)] = data[(64'h50)+:(16)];
        joined[(64'hd0)+:(16)] = data[(64'h60)+:(16)];
        joined[(64'he0)+:(16)] = data[(64'h70)+:(16)];
        joined[(64'hf0)+:(16)] = data[(64'h80)+:(16)];
        floats$halves = joined;
        zero$0$clock = clock;
        zero$0$d = blank;
        if (cut & |tail & (tail <= 0)) begin
            zero$0$d = 1'b1;
        end
        zero$1$clock = clock;
        zero$1$d = blank;
        if (cut & |tail & (tail <= 1)) begin
            zero$1$d = 1'b1;
        end
        zero$2$clock = clock;
        zero$2$d = blank;
        if (cut & |tail & (tail <= 2)) begin
            zero$2$d = 1'b1;
        end
        zero$3$clock = clock;
        zero$3$d = blank;
        if (cut & |tail & (tail <= 3)) begin
            zero$3$d = 1'b1;
        end
        zero$4$clock = clock;
        zero$4$d = blank;
        if (cut & |tail & (tail <= 4)) begin
            zero$4$d = 1'b1;
        end
        zero$5$clock = clock;
        zero$5$d = blank;
        if (cut & |tail & (tail <= 5)) begin
            zero$5$d = 1'b1;
        end
        zero$6$clock = clock;
        zero$6$d = blank;
        if (cut & |tail & (tail <= 6)) begin
            zero$6$d = 1'b1;
        end
        zero$7$clock = clock;
        zero$7$d = blank;
        if (cut & |tail & (tail <= 7)) begin
            zero$7$d = 1'b1;
        end
        out_lanes$d = floats$lanes;
        if (zero$0$q) begin
            out_lanes$d[(64'h0)+:(32)] = 32'h0;
        end
        if (zero$1$q) begin
            out_lanes$d[(64'h20)+:(32)] = 32'h0;
        end
        if (zero$2$q) begin
            out_lanes$d[(64'h40)+:(32)] = 32'h0;
        end
        if (zero$3$q) begin
            out_lanes$d[(64'h60)+:(32)] = 32'h0;
        end
        if (zero$4$q) begin
            out_lanes$d[(64'h80)+:(32)] = 32'h0;
        end
        if (zero$5$q) begin
            out_lanes$d[(64'ha0)+:(32)] = 32'h0;
        end
        if (zero$6$q) begin
            out_lanes$d[(64'hc0)+:(32)] = 32'h0;
        end
        if (zero$7$q) begin
            out_lanes$d[(64'he0)+:(32)] = 32'h0;
        end
        lanes = out_lanes$q;
    end
endmodule // iswitch_accel$datapath$separator$slicer
module iswitch_accel$datapath$separator$slicer$floats(halves,lanes);
    // Module arguments
    input wire  [255:0] halves;
    output reg  [255:0] lanes;
    // Update code (custom)
    always @(*) lanes = halves;
endmodule // iswitch_accel$datapath$separator$slicer$floats
module iswitch_accel$datapath$separator$slicer$held(d,q,clock);
    // Module arguments
    input wire  [255:0] d;
    output reg  [255:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 256'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$slicer$held
module iswitch_accel$datapath$separator$slicer$out_lanes(d,q,clock);
    // Module arguments
    input wire  [255:0] d;
    output reg  [255:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 256'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$slicer$out_lanes
module iswitch_accel$datapath$separator$slicer$zero$0(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$slicer$zero$0
module iswitch_accel$datapath$separator$slicer$zero$1(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$slicer$zero$1
module iswitch_accel$datapath$separator$slicer$zero$2(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$slicer$zero$2
module iswitch_accel$datapath$separator$slicer$zero$3(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$slicer$zero$3
module iswitch_accel$datapath$separator$slicer$zero$4(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$slicer$zero$4
module iswitch_accel$datapath$separator$slicer$zero$5(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$slicer$zero$5
module iswitch_accel$datapath$separator$slicer$zero$6(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$slicer$zero$6
module iswitch_accel$datapath$separator$slicer$zero$7(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$slicer$zero$7
module iswitch_accel$datapath$separator$taken(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$taken
module iswitch_accel$datapath$separator$upcoming(d,q,clock);
    // Module arguments
    input wire  [33:0] d;
    output reg  [33:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 34'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$separator$upcoming
module iswitch_accel$datapath$sums(clock,reset,data_in,push,data_out,valid,empty,pop,room);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [255:0] data_in;
    input wire  push;
    output reg  [255:0] data_out;
    output reg  valid;
    output reg  empty;
    input wire  pop;
    output reg  room;
    // Constant declarations
    localparam  limit = 8'h12;
    // Stub signals
    reg  ram$clock;
    reg  [4:0] ram$write_address;
    reg  [255:0] ram$write_data;
    reg  ram$write_enable;
    reg  [4:0] ram$read_address;
    wire  [255:0] ram$read_data;
    reg  [4:0] write_at$d;
    wire  [4:0] write_at$q;
    reg  write_at$clock;
    reg  [4:0] read_at$d;
    wire  [4:0] read_at$q;
    reg  read_at$clock;
    reg  [7:0] count$d;
    wire  [7:0] count$q;
    reg  count$clock;
    reg  filled$d;
    wire  filled$q;
    reg  filled$clock;
    reg  is_empty$d;
    wire  is_empty$q;
    reg  is_empty$clock;
    reg  has_room$d;
    wire  has_room$q;
    reg  has_room$clock;
    // Local signals
    reg  [7:0] next_count;
    // Sub module instances
    iswitch_accel$datapath$sums$ram ram(
        .clock(ram$clock),
        .write_address(ram$write_address),
        .write_data(ram$write_data),
        .write_enable(ram$write_enable),
        .read_address(ram$read_address),
        .read_data(ram$read_data)
    );
    iswitch_accel$datapath$sums$write_at write_at(
        .d(write_at$d),
        .q(write_at$q),
        .clock(write_at$clock)
    );
    iswitch_accel$datapath$sums$read_at read_at(
        .d(read_at$d),
        .q(read_at$q),
        .clock(read_at$clock)
    );
    iswitch_accel$datapath$sums$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );
    iswitch_accel$datapath$sums$filled filled(
        .d(filled$d),
        .q(filled$q),
        .clock(filled$clock)
    );
    iswitch_accel$datapath$sums$is_empty is_empty(
        .d(is_empty$d),
        .q(is_empty$q),
        .clock(is_empty$clock)
    );
    iswitch_accel$datapath$sums$has_room has_room(
        .d(has_room$d),
        .q(has_room$q),
        .clock(has_room$clock)
    );
    // Update code
    always @(*) begin
        write_at$clock = clock;
        read_at$clock = clock;
        count$clock = clock;
        filled$clock = clock;
        is_empty$clock = clock;
        has_room$clock = clock;
        write_at$d = write_at$q;
        read_at$d = read_at$q;
        count$d = count$q;
        filled$d = filled$q;
        is_empty$d = is_empty$q;
        has_room$d = has_room$q;
        ram$clock = clock;
        ram$write_address = write_at$q;
        ram$write_data = data_in;
        ram$write_enable = push;
        ram$read_address = read_at$q;
        data_out = ram$read_data;
        valid = filled$q;
        empty = is_empty$q;
        room = has_room$q;
        next_count = count$q + 32'h1;
        if (pop) begin
            next_count = count$q - 32'h1;
        end
        if (push) begin
            write_at$d = write_at$q + 32'h1;
        end
        if (pop) begin
            read_at$d = read_at$q + 32'h1;
        end
        if (push ^ pop) begin
            count$d = next_count;
        end
        if (pop) begin
            filled$d = count$q != 32'h1;
            is_empty$d = count$q == 32'h1;
        end
        if (push) begin
            filled$d = 1'b1;
            is_empty$d = 1'b0;
        end
        has_room$d = count$q < limit;
        if (reset) begin
            write_at$d = 32'h0;
            read_at$d = 32'h0;
            count$d = 32'h0;
            filled$d = 1'b0;
            is_empty$d = 1'b1;
            has_room$d = 1'b0;
        end
    end
endmodule // iswitch_accel$datapath$sums
module iswitch_accel$datapath$sums$count(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$sums$count
module iswitch_accel$datapath$sums$filled(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$sums$filled
module iswitch_accel$datapath$sums$has_room(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$sums$has_room
module iswitch_accel$datapath$sums$is_empty(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$sums$is_empty
module iswitch_accel$datapath$sums$ram(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [4:0] write_address;
    input wire  [255:0] write_data;
    input wire  write_enable;
    input wire  [4:0] read_address;
    output reg  [255:0] read_data;
    // Update code (custom)
    (* ram_style = "distributed" *) reg [255:0] words[31:0];
    integer i;
    initial for (i = 0; i <= 31; i = i + 1) words[i] = 0;
    always @(posedge clock) if (write_enable) words[write_address] <= write_data;
    always @(*) read_data = words[read_address];
endmodule // iswitch_accel$datapath$sums$ram
module iswitch_accel$datapath$sums$read_at(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$sums$read_at
module iswitch_accel$datapath$sums$write_at(d,q,clock);
    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 5'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$sums$write_at
module iswitch_accel$datapath$templates(clock,reset,data_in,push,data_out,valid,empty,pop,room);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  [223:0] data_in;
    input wire  push;
    output reg  [223:0] data_out;
    output reg  valid;
    output reg  empty;
    input wire  pop;
    output reg  room;
    // Constant declarations
    localparam  limit = 8'hc;
    // Stub signals
    reg  ram$clock;
    reg  [3:0] ram$write_address;
    reg  [223:0] ram$write_data;
    reg  ram$write_enable;
    reg  [3:0] ram$read_address;
    wire  [223:0] ram$read_data;
    reg  [3:0] write_at$d;
    wire  [3:0] write_at$q;
    reg  write_at$clock;
    reg  [3:0] read_at$d;
    wire  [3:0] read_at$q;
    reg  read_at$clock;
    reg  [7:0] count$d;
    wire  [7:0] count$q;
    reg  count$clock;
    reg  filled$d;
    wire  filled$q;
    reg  filled$clock;
    reg  is_empty$d;
    wire  is_empty$q;
    reg  is_empty$clock;
    reg  has_room$d;
    wire  has_room$q;
    reg  has_room$clock;
    // Local signals
    reg  [7:0] next_count;
    // Sub module instances
    iswitch_accel$datapath$templates$ram ram(
        .clock(ram$clock),
        .write_address(ram$write_address),
        .write_data(ram$write_data),
        .write_enable(ram$write_enable),
        .read_address(ram$read_address),
        .read_data(ram$read_data)
    );
    iswitch_accel$datapath$templates$write_at write_at(
        .d(write_at$d),
        .q(write_at$q),
        .clock(write_at$clock)
    );
    iswitch_accel$datapath$templates$read_at read_at(
        .d(read_at$d),
        .q(read_at$q),
        .clock(read_at$clock)
    );
    iswitch_accel$datapath$templates$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );
    iswitch_accel$datapath$templates$filled filled(
        .d(filled$d),
        .q(filled$q),
        .clock(filled$clock)
    );
    iswitch_accel$datapath$templates$is_empty is_empty(
        .d(is_empty$d),
        .q(is_empty$q),
        .clock(is_empty$clock)
    );
    iswitch_accel$datapath$templates$has_room has_room(
        .d(has_room$d),
        .q(has_room$q),
        .clock(has_room$clock)
    );
    // Update code
    always @(*) begin
        write_at$clock = clock;
        read_at$clock = clock;
        count$clock = clock;
        filled$clock = clock;
        is_empty$clock = clock;
        has_room$clock = clock;
        write_at$d = write_at$q;
        read_at$d = read_at$q;
        count$d = count$q;
        filled$d = filled$q;
        is_empty$d = is_empty$q;
        has_room$d = has_room$q;
        ram$clock = clock;
        ram$write_address = write_at$q;
        ram$write_data = data_in;
        ram$write_enable = push;
        ram$read_address = read_at$q;
        data_out = ram$read_data;
        valid = filled$q;
        empty = is_empty$q;
        room = has_room$q;
        next_count = count$q + 32'h1;
        if (pop) begin
            next_count = count$q - 32'h1;
        end
        if (push) begin
            write_at$d = write_at$q + 32'h1;
        end
        if (pop) begin
            read_at$d = read_at$q + 32'h1;
        end
        if (push ^ pop) begin
            count$d = next_count;
        end
        if (pop) begin
            filled$d = count$q != 32'h1;
            is_empty$d = count$q == 32'h1;
        end
        if (push) begin
            filled$d = 1'b1;
            is_empty$d = 1'b0;
        end
        has_room$d = count$q < limit;
        if (reset) begin
            write_at$d = 32'h0;
            read_at$d = 32'h0;
            count$d = 32'h0;
            filled$d = 1'b0;
            is_empty$d = 1'b1;
            has_room$d = 1'b0;
        end
    end
endmodule // iswitch_accel$datapath$templates
module iswitch_accel$datapath$templates$count(d,q,clock);
    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 8'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$templates$count
module iswitch_accel$datapath$templates$filled(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$templates$filled
module iswitch_accel$datapath$templates$has_room(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$templates$has_room
module iswitch_accel$datapath$templates$is_empty(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$templates$is_empty
module iswitch_accel$datapath$templates$ram(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [3:0] write_address;
    input wire  [223:0] write_data;
    input wire  write_enable;
    input wire  [3:0] read_address;
    output reg  [223:0] read_data;
    // Update code (custom)
    (* ram_style = "distributed" *) reg [223:0] words[15:0];
    integer i;
    initial for (i = 0; i <= 15; i = i + 1) words[i] = 0;
    always @(posedge clock) if (write_enable) words[write_address] <= write_data;
    always @(*) read_data = words[read_address];
endmodule // iswitch_accel$datapath$templates$ram
module iswitch_accel$datapath$templates$read_at(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$templates$read_at
module iswitch_accel$datapath$templates$write_at(d,q,clock);
    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 4'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$datapath$templates$write_at
module iswitch_accel$registers(clock,reset,write,write_word,write_data,read_word,read_data,status,counter,frame_in,frame_out,hazard,skip,table_value,filter,job,template,finish_round,finish_first,sets_control,sets_threshold,starts_finish,clears_sums,clears_counters,sets_member,selects_slot,pace,budget,refused,clearing);
    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  write;
    input wire  [9:0] write_word;
    input wire  [31:0] write_data;
    input wire  [9:0] read_word;
    output reg  [31:0] read_data;
    input wire  [31:0] status;
    input wire  [31:0] counter;
    input wire  frame_in;
    input wire  frame_out;
    input wire  hazard;
    input wire  skip;
    input wire  [31:0] table_value;
    output reg  [65:0] filter;
    output reg  [97:0] job;
    output reg  [223:0] template;
    output reg  [23:0] finish_round;
    output reg  [23:0] finish_first;
    output reg  sets_control;
    output reg  sets_threshold;
    output reg  starts_finish;
    output reg  clears_sums;
    output reg  clears_counters;
    output reg  sets_member;
    output reg  selects_slot;
    output reg  [7:0] pace;
    output reg  [15:0] budget;
    output reg  refused;
    output reg  clearing;
    // Stub signals
    reg  [31:0] words$0$d;
    wire  [31:0] words$0$q;
    reg  words$0$clock;
    reg  [31:0] words$1$d;
    wire  [31:0] words$1$q;
    reg  words$1$clock;
    reg  [31:0] words$2$d;
    wire  [31:0] words$2$q;
    reg  words$2$clock;
    reg  [31:0] words$3$d;
    wire  [31:0] words$3$q;
    reg  words$3$clock;
    reg  [31:0] words$4$d;
    wire  [31:0] words$4$q;
    reg  words$4$clock;
    reg  [31:0] words$5$d;
    wire  [31:0] words$5$q;
    reg  words$5$clock;
    reg  [31:0] words$6$d;
    wire  [31:0] words$6$q;
    reg  words$6$clock;
    reg  [31:0] words$7$d;
    wire  [31:0] words$7$q;
    reg  words$7$clock;
    reg  [31:0] words$8$d;
    wire  [31:0] words$8$q;
    reg  words$8$clock;
    reg  [31:0] words$9$d;
    wire  [31:0] words$9$q;
    reg  words$9$clock;
    reg  [31:0] words$10$d;
    wire  [31:0] words$10$q;
    reg  words$10$clock;
    reg  [31:0] words$11$d;
    wire  [31:0] words$11$q;
    reg  words$11$clock;
    reg  [31:0] words$12$d;
    wire  [31:0] words$12$q;
    reg  words$12$clock;
    reg  [31:0] words$13$d;
    wire  [31:0] words$13$q;
    reg  words$13$clock;
    reg  [31:0] words$14$d;
    wire  [31:0] words$14$q;
    reg  words$14$clock;
    reg  [31:0] words$15$d;
    wire  [31:0] words$15$q;
    reg  words$15$clock;
    reg  [31:0] words$16$d;
    wire  [31:0] words$16$q;
    reg  words$16$clock;
    reg  copy$clock;
    reg  [5:0] copy$write_address;
    reg  [31:0] copy$write_data;
    reg  copy$write_enable;
    reg  [5:0] copy$read_address;
    wire  [31:0] copy$read_data;
    reg  sweeping$d;
    wire  sweeping$q;
    reg  sweeping$clock;
    reg  [5:0] at$d;
    wire  [5:0] at$q;
    reg  at$clock;
    reg  chosen$0$d;
    wire  chosen$0$q;
    reg  chosen$0$clock;
    reg  chosen$1$d;
    wire  chosen$1$q;
    reg  chosen$1$clock;
    reg  chosen$2$d;
    wire  chosen$2$q;
    reg  chosen$2$clock;
    reg  chosen$3$d;
    wire  chosen$3$q;
    reg  chosen$3$clock;
    reg  chosen$4$d;
    wire  chosen$4$q;
    reg  chosen$4$clock;
    reg  chosen$5$d;
    wire  chosen$5$q;
    reg  chosen$5$clock;
    reg  chosen$6$d;
    wire  chosen$6$q;
    reg  chosen$6$clock;
    reg  chosen$7$d;
    wire  chosen$7$q;
    reg  chosen$7$clock;
    reg  chosen$8$d;
    wire  chosen$8$q;
    reg  chosen$8$clock;
    reg  chosen$9$d;
    wire  chosen$9$q;
    reg  chosen$9$clock;
    reg  [31:0] copied$d;
    wire  [31:0] copied$q;
    reg  copied$clock;
    reg  [31:0] frames_in$d;
    wire  [31:0] frames_in$q;
    reg  frames_in$clock;
    reg  [31:0] frames_out$d;
    wire  [31:0] frames_out$q;
    reg  frames_out$clock;
    reg  [31:0] hazards$d;
    wire  [31:0] hazards$q;
    reg  hazards$clock;
    reg  [31:0] skipped$d;
    wire  [31:0] skipped$q;
    reg  skipped$clock;
    reg  skips$d;
    wire  skips$q;
    reg  skips$clock;
    reg  [15:0] held_budget$d;
    wire  [15:0] held_budget$q;
    reg  held_budget$clock;
    reg  [5:0] range$word;
    reg  [31:0] range$data;
    wire  range$outside;
    reg  writes$d;
    wire  writes$q;
    reg  writes$clock;
    reg  finishes$d;
    wire  finishes$q;
    reg  finishes$clock;
    reg  refuses$d;
    wire  refuses$q;
    reg  refuses$clock;
    reg  was_refused$d;
    wire  was_refused$q;
    reg  was_refused$clock;
    reg  [31:0] view$control;
    reg  [31:0] view$base;
    reg  [31:0] view$last_index;
    reg  [31:0] view$floats;
    reg  [31:0] view$job_id;
    reg  [31:0] view$filter_word;
    reg  [31:0] view$to_mac;
    reg  [31:0] view$macs;
    reg  [31:0] view$from_mac;
    reg  [31:0] view$from_address;
    reg  [31:0] view$to_address;
    reg  [31:0] view$ports;
    reg  [31:0] view$result;
    wire  [65:0] view$filter;
    wire  [97:0] view$job;
    wire  [223:0] view$template;
    // Local signals
    reg  [5:0] word;
    reg  [15:0] write_low;
    reg  low;
    reg  in_map;
    // Sub module instances
    iswitch_accel$registers$words$0 words$0(
        .d(words$0$d),
        .q(words$0$q),
        .clock(words$0$clock)
    );
    iswitch_accel$registers$words$1 words$1(
        .d(words$1$d),
        .q(words$1$q),
        .clock(words$1$clock)
    );
    iswitch_accel$registers$words$2 words$2(
        .d(words$2$d),
        .q(words$2$q),
        .clock(words$2$clock)
    );
    iswitch_accel$registers$words$3 words$3(
        .d(words$3$d),
        .q(words$3$q),
        .clock(words$3$clock)
    );
    iswitch_accel$registers$words$4 words$4(
        .d(words$4$d),
        .q(words$4$q),
        .clock(words$4$clock)
    );
    iswitch_accel$registers$words$5 words$5(
        .d(words$5$d),
        .q(words$5$q),
        .clock(words$5$clock)
    );
    iswitch_accel$registers$words$6 words$6(
        .d(words$6$d),
        .q(words$6$q),
        .clock(words$6$clock)
    );
    iswitch_accel$registers$words$7 words$7(
        .d(words$7$d),
        .q(words$7$q),
        .clock(words$7$clock)
    );
    iswitch_accel$registers$words$8 words$8(
        .d(words$8$d),
        .q(words$8$q),
        .clock(words$8$clock)
    );
    iswitch_accel$registers$words$9 words$9(
        .d(words$9$d),
        .q(words$9$q),
        .clock(words$9$clock)
    );
    iswitch_accel$registers$words$10 words$10(
        .d(words$10$d),
        .q(words$10$q),
        .clock(words$10$clock)
    );
    iswitch_accel$registers$words$11 words$11(
        .d(words$11$d),
        .q(words$11$q),
        .clock(words$11$clock)
    );
    iswitch_accel$registers$words$12 words$12(
        .d(words$12$d),
        .q(words$12$q),
        .clock(words$12$clock)
    );
    iswitch_accel$registers$words$13 words$13(
        .d(words$13$d),
        .q(words$13$q),
        .clock(words$13$clock)
    );
    iswitch_accel$registers$words$14 words$14(
        .d(words$14$d),
        .q(words$14$q),
        .clock(words$14$clock)
    );
    iswitch_accel$registers$words$15 words$15(
        .d(words$15$d),
        .q(words$15$q),
        .clock(words$15$clock)
    );
    iswitch_accel$registers$words$16 words$16(
        .d(words$16$d),
        .q(words$16$q),
        .clock(words$16$clock)
    );
    iswitch_accel$registers$copy copy(
        .clock(copy$clock),
        .write_address(copy$write_address),
        .write_data(copy$write_data),
        .write_enable(copy$write_enable),
        .read_address(copy$read_address),
        .read_data(copy$read_data)
    );
    iswitch_accel$registers$sweeping sweeping(
        .d(sweeping$d),
        .q(sweeping$q),
        .clock(sweeping$clock)
    );
    iswitch_accel$registers$at at(
        .d(at$d),
        .q(at$q),
        .clock(at$clock)
    );
    iswitch_accel$registers$chosen$0 chosen$0(
        .d(chosen$0$d),
        .q(chosen$0$q),
        .clock(chosen$0$clock)
    );
    iswitch_accel$registers$chosen$1 chosen$1(
        .d(chosen$1$d),
        .q(chosen$1$q),
        .clock(chosen$1$clock)
    );
    iswitch_accel$registers$chosen$2 chosen$2(
        .d(chosen$2$d),
        .q(chosen$2$q),
        .clock(chosen$2$clock)
    );
    iswitch_accel$registers$chosen$3 chosen$3(
        .d(chosen$3$d),
        .q(chosen$3$q),
        .clock(chosen$3$clock)
    );
    iswitch_accel$registers$chosen$4 chosen$4(
        .d(chosen$4$d),
        .q(chosen$4$q),
        .clock(chosen$4$clock)
    );
    iswitch_accel$registers$chosen$5 chosen$5(
        .d(chosen$5$d),
        .q(chosen$5$q),
        .clock(chosen$5$clock)
    );
    iswitch_accel$registers$chosen$6 chosen$6(
        .d(chosen$6$d),
        .q(chosen$6$q),
        .clock(chosen$6$clock)
    );
    iswitch_accel$registers$chosen$7 chosen$7(
        .d(chosen$7$d),
        .q(chosen$7$q),
        .clock(chosen$7$clock)
    );
    iswitch_accel$registers$chosen$8 chosen$8(
        .d(chosen$8$d),
        .q(chosen$8$q),
        .clock(chosen$8$clock)
    );
    iswitch_accel$registers$chosen$9 chosen$9(
        .d(chosen$9$d),
        .q(chosen$9$q),
        .clock(chosen$9$clock)
    );
    iswitch_accel$registers$copied copied(
        .d(copied$d),
        .q(copied$q),
        .clock(copied$clock)
    );
    iswitch_accel$registers$frames_in frames_in(
        .d(frames_in$d),
        .q(frames_in$q),
        .clock(frames_in$clock)
    );
    iswitch_accel$registers$frames_out frames_out(
        .d(frames_out$d),
        .q(frames_out$q),
        .clock(frames_out$clock)
    );
    iswitch_accel$registers$hazards hazards(
        .d(hazards$d),
        .q(hazards$q),
        .clock(hazards$clock)
    );
    iswitch_accel$registers$skipped skipped(
        .d(skipped$d),
        .q(skipped$q),
        .clock(skipped$clock)
    );
    iswitch_accel$registers$skips skips(
        .d(skips$d),
        .q(skips$q),
        .clock(skips$clock)
    );
    iswitch_accel$registers$held_budget held_budget(
        .d(held_budget$d),
        .q(held_budget$q),
        .clock(held_budget$clock)
    );
    iswitch_accel$registers$range range(
        .word(range$word),
        .data(range$data),
        .outside(range$outside)
    );
    iswitch_accel$registers$writes writes(
        .d(writes$d),
        .q(writes$q),
        .clock(writes$clock)
    );
    iswitch_accel$registers$finishes finishes(
        .d(finishes$d),
        .q(finishes$q),
        .clock(finishes$clock)
    );
    iswitch_accel$registers$refuses refuses(
        .d(refuses$d),
        .q(refuses$q),
        .clock(refuses$clock)
    );
    iswitch_accel$registers$was_refused was_refused(
        .d(was_refused$d),
        .q(was_refused$q),
        .clock(was_refused$clock)
    );
    iswitch_accel$registers$view view(
        .control(view$control),
        .base(view$base),
        .last_index(view$last_index),
        .floats(view$floats),
        .job_id(view$job_id),
        .filter_word(view$filter_word),
        .to_mac(view$to_mac),
        .macs(view$macs),
        .from_mac(view$from_mac),
        .from_address(view$from_address),
        .to_address(view$to_address),
        .ports(view$ports),
        .result(view$result),
        .filter(view$filter),
        .job(view$job),
        .template(view$template)
    );
    // Update code
    always @(*) begin
        writes$clock = clock;
        finishes$clock = clock;
        refuses$clock = clock;
        sweeping$clock = clock;
        was_refused$clock = clock;
        at$clock = clock;
        copied$clock = clock;
        frames_in$clock = clock;
        frames_out$clock = clock;
        hazards$clock = clock;
        skipped$clock = clock;
        skips$clock = clock;
        held_budget$clock = clock;
        writes$d = writes$q;
        finishes$d = finishes$q;
        refuses$d = refuses$q;
        sweeping$d = sweeping$q;
        was_refused$d = was_refused$q;
        at$d = at$q;
        copied$d = copied$q;
        frames_in$d = frames_in$q;
        frames_out$d = frames_out$q;
        hazards$d = hazards$q;
        skipped$d = skipped$q;
        skips$d = skips$q;
        held_budget$d = held_budget$q;
        copy$clock = clock;
        word = write_word[(32'h0)+:(6)];
        range$word = word;
        range$data = write_data;
        in_map = write & ~|write_word[(32'h6)+:(4)];
        writes$d = in_map & ~range$outside;
        finishes$d = word == 32'h11;
        refuses$d = in_map & range$outside;
        low = writes$q;
        if (refuses$q) begin
            was_refused$d = 1'b1;
        end
        if (reset | clears_counters) begin
            was_refused$d = 1'b0;
        end
        refused = was_refused$q;
        clearing = sweeping$q;
        words$0$clock = clock;
        words$0$d = words$0$q;
        if (low & (word == 8)) begin
            words$0$d = write_data;
        end
        if (reset) begin
            words$0$d = 32'h0;
        end
        words$1$clock = clock;
        words$1$d = words$1$q;
        if (low & (word == 9)) begin
            words$1$d = write_data;
        end
        if (reset) begin
            words$1$d = 32'h0;
        end
        words$2$clock = clock;
        words$2$d = words$2$q;
        if (low & (word == 10)) begin
            words$2$d = write_data;
        end
        if (reset) begin
            words$2$d = 32'h0;
        end
        words$3$clock = clock;
        words$3$d = words$3$q;
        if (low & (word == 11)) begin
            words$3$d = write_data;
        end
        if (reset) begin
            words$3$d = 32'h0;
        end
        words$4$clock = clock;
        words$4$d = words$4$q;
        if (low & (word == 12)) begin
            words$4$d = write_data;
        end
        if (reset) begin
            words$4$d = 32'h0;
        end
        words$5$clock = clock;
        words$5$d = words$5$q;
        if (low & (word == 13)) begin
            words$5$d = write_data;
        end
        if (reset) begin
            words$5$d = 32'h0;
        end
        words$6$clock = clock;
        words$6$d = words$6$q;
        if (low & (word == 14)) begin
            words$6$d = write_data;
        end
        if (reset) begin
            words$6$d = 32'h0;
        end
        words$7$clock = clock;
        words$7$d = words$7$q;
        if (low & (word == 15)) begin
            words$7$d = write_data;
        end
        if (reset) begin
            words$7$d = 32'h0;
        end
        words$8$clock = clock;
        words$8$d = words$8$q;
        if (low & (word == 16)) begin
            words$8$d = write_data;
        end
        if (reset) begin
            words$8$d = 32'h0;
        end
        words$9$clock = clock;
        words$9$d = words$9$q;
        if (low & (word == 17)) begin
            words$9$d = write_data;
        end
        if (reset) begin
            words$9$d = 32'h0;
        end
        words$10$clock = clock;
        words$10$d = words$10$q;
        if (low & (word == 18)) begin
            words$10$d = write_data;
        end
        if (reset) begin
            words$10$d = 32'h0;
        end
        words$11$clock = clock;
        words$11$d = words$11$q;
        if (low & (word == 19)) begin
            words$11$d = write_data;
        end
        if (reset) begin
            words$11$d = 32'h0;
        end
        words$12$clock = clock;
        words$12$d = words$12$q;
        if (low & (word == 20)) begin
            words$12$d = write_data;
        end
        if (reset) begin
            words$12$d = 32'h0;
        end
        words$13$clock = clock;
        words$13$d = words$13$q;
        if (low & (word == 21)) begin
            words$13$d = write_data;
        end
        if (reset) begin
            words$13$d = 32'h0;
        end
        words$14$clock = clock;
        words$14$d = words$14$q;
        if (low & (word == 22)) begin
            words$14$d = write_data;
        end
        if (reset) begin
            words$14$d = 32'h0;
        end
        words$15$clock = clock;
        words$15$d = words$15$q;
        if (low & (word == 23)) begin
            words$15$d = write_data;
        end
        if (reset) begin
            words$15$d = 32'h0;
        end
        words$16$clock = clock;
        words$16$d = words$16$q;
        if (low & (word == 24)) begin
            words$16$d = write_data;
        end
        if (reset) begin
            words$16$d = 32'h0;
        end
        clears_counters = low & (word == 32'h2) & write_data[32'h0];
        clears_sums = low & (word == 32'h2) & write_data[32'h4];
        sets_control = low & (word == 32'h8);
        sets_threshold = low & (word == 32'h9);
        starts_finish = low & finishes$q;
        selects_slot = low & (word == 32'h1c);
        sets_member = low & (word[(32'h4)+:(2)] == 32'h2);
        copy$write_address = word;
        copy$write_data = write_data;
        copy$write_enable = low;
        if (sweeping$q) begin
            copy$write_address = at$q;
            copy$write_data = 32'h0;
            copy$write_enable = 1'b1;
            at$d = at$q + 32'h1;
            if (&at$q) begin
                sweeping$d = 1'b0;
            end
        end
        copy$read_address = read_word[(32'h0)+:(6)];
        copied$d = copy$read_data;
        chosen$0$clock = clock;
        chosen$1$clock = clock;
        chosen$2$clock = clock;
        chosen$3$clock = clock;
        chosen$4$clock = clock;
        chosen$5$clock = clock;
        chosen$6$clock = clock;
        chosen$7$clock = clock;
        chosen$8$clock = clock;
        chosen$9$clock = clock;
        chosen$0$d = read_word == 32'h0;
        chosen$1$d = read_word == 32'h1;
        chosen$2$d = read_word == 32'h3;
        chosen$3$d = read_word == 32'h5;
        chosen$4$d = read_word == 32'h6;
        chosen$5$d = read_word == 32'h7;
        chosen$6$d = read_word == 32'h19;
        chosen$8$d = read_word == 32'h1b;
        chosen$7$d = read_word[32'h6] & ~read_word[32'h5];
        chosen$9$d = &read_word[(32'h5)+:(2)];
        read_data = copied$q;
        if (chosen$0$q) begin
            read_data = 32'h575369;
        end
        if (chosen$1$q) begin
            read_data = 32'h4;
        end
        if (chosen$2$q) begin
            read_data = ~copied$q;
        end
        if (chosen$3$q) begin
            read_data = frames_in$q;
        end
        if (chosen$4$q) begin
            read_data = frames_out$q;
        end
        if (chosen$5$q) begin
            read_data = status;
        end
        if (chosen$6$q) begin
            read_data = hazards$q;
        end
        if (chosen$7$q) begin
            read_data = counter;
        end
        if (chosen$9$q) begin
            read_data = table_value;
        end
        if (chosen$8$q) begin
            read_data = skipped$q;
        end
        if (frame_in) begin
            frames_in$d = frames_in$q + 32'h1;
        end
        if (frame_out) begin
            frames_out$d = frames_out$q + 32'h1;
        end
        write_low = write_data[(32'h0)+:(16)];
        skips$d = skip;
        if (skips$q) begin
            skipped$d = skipped$q + 32'h1;
        end
        budget = held_budget$q;
        if (low & (word == 32'h1a)) begin
            held_budget$d = write_low;
        end
        if (hazard) begin
            hazards$d = hazards$q + 32'h1;
        end
        if (reset) begin
            sweeping$d = 1'b1;
            at$d = 32'h0;
            held_budget$d = 32'h0;
        end
        if (reset | clears_counters) begin
            frames_in$d = 32'h0;
            frames_out$d = 32'h0;
            hazards$d = 32'h0;
            skipped$d = 32'h0;
        end
        view$control = words$0$q;
        view$base = words$2$q;
        view$last_index = words$3$q;
        view$floats = words$4$q;
        view$job_id = words$5$q;
        view$filter_word = words$6$q;
        finish_round = words$7$q[(32'h0)+:(24)];
        finish_first = words$8$q[(32'h0)+:(24)];
        view$to_mac = words$10$q;
        view$macs = words$11$q;
        view$from_mac = words$12$q;
        view$from_address = words$13$q;
        view$to_address = words$14$q;
        view$ports = words$15$q;
        view$result = words$16$q;
        pace = words$0$q[(32'h8)+:(8)];
        filter = view$filter;
        job = view$job;
        template = view$template;
    end
endmodule // iswitch_accel$registers
module iswitch_accel$registers$at(d,q,clock);
    // Module arguments
    input wire  [5:0] d;
    output reg  [5:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 6'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$at
module iswitch_accel$registers$chosen$0(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$chosen$0
module iswitch_accel$registers$chosen$1(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$chosen$1
module iswitch_accel$registers$chosen$2(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$chosen$2
module iswitch_accel$registers$chosen$3(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$chosen$3
module iswitch_accel$registers$chosen$4(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$chosen$4
module iswitch_accel$registers$chosen$5(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$chosen$5
module iswitch_accel$registers$chosen$6(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$chosen$6
module iswitch_accel$registers$chosen$7(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$chosen$7
module iswitch_accel$registers$chosen$8(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$chosen$8
module iswitch_accel$registers$chosen$9(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$chosen$9
module iswitch_accel$registers$copied(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$copied
module iswitch_accel$registers$copy(clock,write_address,write_data,write_enable,read_address,read_data);
    // Module arguments
    input wire  clock;
    input wire  [5:0] write_address;
    input wire  [31:0] write_data;
    input wire  write_enable;
    input wire  [5:0] read_address;
    output reg  [31:0] read_data;
    // Update code (custom)
    (* ram_style = "distributed" *) reg [31:0] words[63:0];
    integer i;
    initial for (i = 0; i <= 63; i = i + 1) words[i] = 0;
    always @(posedge clock) if (write_enable) words[write_address] <= write_data;
    always @(*) read_data = words[read_address];
endmodule // iswitch_accel$registers$copy
module iswitch_accel$registers$finishes(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$finishes
module iswitch_accel$registers$frames_in(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$frames_in
module iswitch_accel$registers$frames_out(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$frames_out
module iswitch_accel$registers$hazards(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$hazards
module iswitch_accel$registers$held_budget(d,q,clock);
    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 16'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$held_budget
module iswitch_accel$registers$range(word,data,outside);
    // Module arguments
    input wire  [5:0] word;
    input wire  [31:0] data;
    output reg  outside;
    // Local signals
    reg  [15:0] floats;
    reg  [15:0] last_floats;
    reg  [30:0] number;
    reg  above_64;
    reg  above_1024;
    // Update code
    always @(*) begin
        number = data[(32'h0)+:(31)];
        floats = data[(32'h0)+:(16)];
        last_floats = data[(32'h10)+:(16)];
        outside = 1'b0;
        above_64 = |number[(32'h7)+:(24)] | (number[32'h6] & |number[(32'h0)+:(6)]);
        above_1024 = |number[(32'hb)+:(20)] | (number[32'ha] & |number[(32'h0)+:(10)]);
        if (word == 32'h9) begin
            outside = ~|number | above_64;
        end
        if ((word == 32'ha) | (word == 32'hb) | (word == 32'hf) | (word == 32'h10)) begin
            outside = |data[(32'h18)+:(8)];
        end
        if (word == 32'hc) begin
            outside = ~|floats | (floats > 32'h16e) | ~|last_floats | (last_floats > floats);
        end
        if (word == 32'h1c) begin
            outside = |data[(32'h8)+:(24)];
        end
        if (word == 32'h1a) begin
            outside = |data[(32'h10)+:(16)];
        end
        if (word == 32'h11) begin
            outside = above_1024;
        end
    end
endmodule // iswitch_accel$registers$range
module iswitch_accel$registers$refuses(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$refuses
module iswitch_accel$registers$skipped(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$skipped
module iswitch_accel$registers$skips(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$skips
module iswitch_accel$registers$sweeping(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$sweeping
module iswitch_accel$registers$view(control,base,last_index,floats,job_id,filter_word,to_mac,macs,from_mac,from_address,to_address,ports,result,filter,job,template);
    // Module arguments
    input wire  [31:0] control;
    input wire  [31:0] base;
    input wire  [31:0] last_index;
    input wire  [31:0] floats;
    input wire  [31:0] job_id;
    input wire  [31:0] filter_word;
    input wire  [31:0] to_mac;
    input wire  [31:0] macs;
    input wire  [31:0] from_mac;
    input wire  [31:0] from_address;
    input wire  [31:0] to_address;
    input wire  [31:0] ports;
    input wire  [31:0] result;
    output reg  [65:0] filter;
    output reg  [97:0] job;
    output reg  [223:0] template;
    // Update code
    always @(*) begin
        filter[(64'h0)+:(1)] = control[32'h0];
        filter[(64'h1)+:(1)] = control[32'h2];
        filter[(64'h2)+:(8)] = filter_word[(32'h0)+:(8)];
        filter[(64'ha)+:(8)] = filter_word[(32'h8)+:(8)];
        filter[(64'h12)+:(16)] = filter_word[(32'h10)+:(16)];
        filter[(64'h22)+:(16)] = from_address[(32'h0)+:(16)];
        filter[(64'h32)+:(16)] = from_address[(32'h10)+:(16)];
        job[(64'h0)+:(24)] = base[(32'h0)+:(24)];
        job[(64'h18)+:(24)] = last_index[(32'h0)+:(24)];
        job[(64'h30)+:(9)] = floats[(32'h0)+:(9)];
        job[(64'h39)+:(9)] = floats[(32'h10)+:(9)];
        job[(64'h42)+:(32)] = job_id;
        template[(64'h0)+:(16)] = to_mac[(32'h0)+:(16)];
        template[(64'h10)+:(16)] = to_mac[(32'h10)+:(16)];
        template[(64'h20)+:(16)] = macs[(32'h0)+:(16)];
        template[(64'h30)+:(16)] = macs[(32'h10)+:(16)];
        template[(64'h40)+:(16)] = from_mac[(32'h0)+:(16)];
        template[(64'h50)+:(16)] = from_mac[(32'h10)+:(16)];
        template[(64'h60)+:(16)] = from_address[(32'h0)+:(16)];
        template[(64'h70)+:(16)] = from_address[(32'h10)+:(16)];
        template[(64'h80)+:(16)] = to_address[(32'h0)+:(16)];
        template[(64'h90)+:(16)] = to_address[(32'h10)+:(16)];
        template[(64'ha0)+:(16)] = ports[(32'h0)+:(16)];
        template[(64'hb0)+:(16)] = ports[(32'h10)+:(16)];
        template[(64'hc0)+:(8)] = result[(32'h0)+:(8)];
        template[(64'hc8)+:(8)] = result[(32'h8)+:(8)];
        template[(64'hd0)+:(16)] = result[(32'h10)+:(16)];
    end
endmodule // iswitch_accel$registers$view
module iswitch_accel$registers$was_refused(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$was_refused
module iswitch_accel$registers$words$0(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$0
module iswitch_accel$registers$words$1(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$1
module iswitch_accel$registers$words$10(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$10
module iswitch_accel$registers$words$11(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$11
module iswitch_accel$registers$words$12(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$12
module iswitch_accel$registers$words$13(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$13
module iswitch_accel$registers$words$14(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$14
module iswitch_accel$registers$words$15(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$15
module iswitch_accel$registers$words$16(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$16
module iswitch_accel$registers$words$2(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$2
module iswitch_accel$registers$words$3(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$3
module iswitch_accel$registers$words$4(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$4
module iswitch_accel$registers$words$5(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$5
module iswitch_accel$registers$words$6(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$6
module iswitch_accel$registers$words$7(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$7
module iswitch_accel$registers$words$8(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$8
module iswitch_accel$registers$words$9(d,q,clock);
    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 32'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$words$9
module iswitch_accel$registers$writes(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$registers$writes
module iswitch_accel$reset(d,q,clock);
    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;
    // Update code (custom)
    initial begin
       q = 1'h0;
    end
    always @(posedge clock) begin
       q <= d;
    end
endmodule // iswitch_accel$reset
