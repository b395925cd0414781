// Model of the switch's input arbiter: serves five receive queues in round-robin order, packet by packet.
module input_arbiter (
    input wire axis_aclk,
    input wire axis_resetn,
    input wire [5*256-1:0] s_tdata,
    input wire [5*32-1:0] s_tkeep,
    input wire [5*128-1:0] s_tuser,
    input wire [4:0] s_tvalid,
    output wire [4:0] s_tready,
    input wire [4:0] s_tlast,
    output wire [255:0] m_tdata,
    output wire [31:0] m_tkeep,
    output wire [127:0] m_tuser,
    output wire m_tvalid,
    input wire m_tready,
    output wire m_tlast
);
    reg busy = 0;
    reg [2:0] turn = 0;
    reg [2:0] next;
    reg found;
    integer i;

    // Selects the first non-empty queue after the current one.
    always @(*) begin
        next = turn;
        found = 0;
        for (i = 5; i >= 1; i = i - 1)
            if (s_tvalid[(turn + i) % 5]) begin
                next = (turn + i) % 5;
                found = 1;
            end
    end

    assign m_tdata = s_tdata[256*turn +: 256];
    assign m_tkeep = s_tkeep[32*turn +: 32];
    assign m_tuser = s_tuser[128*turn +: 128];
    assign m_tlast = s_tlast[turn];
    assign m_tvalid = busy && s_tvalid[turn];
    assign s_tready = busy && m_tready ? 5'b1 << turn : 5'b0;

    always @(posedge axis_aclk)
        if (!axis_resetn) begin
            busy <= 0;
            turn <= 0;
        end else if (!busy) begin
            turn <= next;
            busy <= found;
        end else if (m_tvalid && m_tready && m_tlast)
            busy <= 0;
endmodule
