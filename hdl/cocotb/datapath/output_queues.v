// Model of the switch's output queues, with 4096 bytes per port. A packet enters the queue of each port in its
// `tuser`. If a queue has no room for a packet of maximum length, it drops the whole packet. The input never stalls.
module output_queues (
    input wire axis_aclk,
    input wire axis_resetn,
    input wire [255:0] s_tdata,
    input wire [31:0] s_tkeep,
    input wire [127:0] s_tuser,
    input wire s_tvalid,
    output wire s_tready,
    input wire s_tlast,
    output wire [4*256-1:0] m_tdata,
    output wire [4*32-1:0] m_tkeep,
    output wire [4*128-1:0] m_tuser,
    output wire [3:0] m_tvalid,
    input wire [3:0] m_tready,
    output wire [3:0] m_tlast,
    output wire [4*32-1:0] dropped
);
    reg midway = 0;
    assign s_tready = 1;
    always @(posedge axis_aclk)
        if (!axis_resetn) midway <= 0;
        else if (s_tvalid) midway <= !s_tlast;

    genvar port;
    generate
        for (port = 0; port < 4; port = port + 1) begin : queues
            output_queue queue (
                .clock(axis_aclk),
                .resetn(axis_resetn),
                .beat({s_tlast, s_tuser, s_tkeep, s_tdata}),
                // The ports are one-hot; the network ports are the even bits.
                .valid(s_tvalid && s_tuser[24 + 2 * port]),
                .first(!midway),
                .oldest({m_tlast[port], m_tuser[128*port +: 128], m_tkeep[32*port +: 32], m_tdata[256*port +: 256]}),
                .oldest_valid(m_tvalid[port]),
                .ready(m_tready[port]),
                .dropped(dropped[32*port +: 32])
            );
        end
    endgenerate
endmodule

// Output queue of one port.
module output_queue #(
    parameter BEATS = 4096 / 32,
    parameter LONGEST_PACKET_BEATS = 1600 / 32
) (
    input wire clock,
    input wire resetn,
    input wire [416:0] beat,
    input wire valid,
    input wire first,
    output wire [416:0] oldest,
    output wire oldest_valid,
    input wire ready,
    output reg [31:0] dropped
);
    reg [416:0] beats [0:BEATS-1];
    reg [31:0] written = 0;
    reg [31:0] taken = 0;
    reg keeps = 0;
    wire nearly_full = BEATS - (written - taken) < LONGEST_PACKET_BEATS;
    wire keep = first ? !nearly_full : keeps;

    assign oldest = beats[taken % BEATS];
    assign oldest_valid = written != taken;

    always @(posedge clock)
        if (!resetn) begin
            written <= 0;
            taken <= 0;
            dropped <= 0;
        end else begin
            if (valid) begin
                keeps <= keep;
                if (keep) begin
                    beats[written % BEATS] <= beat;
                    written <= written + 1;
                end else if (first)
                    dropped <= dropped + 1;
            end
            if (oldest_valid && ready) taken <= taken + 1;
        end
endmodule
