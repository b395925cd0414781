// Model of the learning switch's lookup, which writes the destination ports into `tuser`.
//
// A frame to a known MAC address goes to its port. A broadcast, or a frame to an unknown address, goes to all network
// ports except its source port; if its source port is 0, it goes to all four.
module output_port_lookup #(
    parameter ENTRIES = 16
) (
    input wire axis_aclk,
    input wire axis_resetn,
    input wire [255:0] s_tdata,
    input wire [31:0] s_tkeep,
    input wire [127:0] s_tuser,
    input wire s_tvalid,
    output wire s_tready,
    input wire s_tlast,
    output wire [255:0] m_tdata,
    output wire [31:0] m_tkeep,
    output wire [127:0] m_tuser,
    output wire m_tvalid,
    input wire m_tready,
    output wire m_tlast
);
    reg [47:0] macs [0:ENTRIES-1];
    reg [7:0] ports [0:ENTRIES-1];
    reg [ENTRIES-1:0] used = 0;
    reg [3:0] oldest = 0;
    reg midway = 0;
    reg [7:0] held = 0;

    wire [47:0] to = s_tdata[47:0];
    wire [47:0] from = s_tdata[95:48];
    wire [7:0] source = s_tuser[23:16];
    reg [7:0] destination;
    reg [3:0] learns_at;
    reg knows;
    integer i;
    always @(*) begin
        destination = 8'h55 & ~source;
        learns_at = oldest;
        knows = 0;
        for (i = 0; i < ENTRIES; i = i + 1) begin
            if (used[i] && macs[i] == to && to != 48'hffffffffffff) destination = ports[i];
            if (used[i] && macs[i] == from) begin
                learns_at = i;
                knows = 1;
            end
        end
        if (midway) destination = held;
    end

    assign m_tdata = s_tdata;
    assign m_tkeep = s_tkeep;
    assign m_tuser = {s_tuser[127:32], destination, s_tuser[23:0]};
    assign m_tvalid = s_tvalid;
    assign m_tlast = s_tlast;
    assign s_tready = m_tready;

    always @(posedge axis_aclk)
        if (!axis_resetn) begin
            used <= 0;
            oldest <= 0;
            midway <= 0;
        end else if (s_tvalid && s_tready) begin
            midway <= !s_tlast;
            held <= destination;
            if (!midway) begin
                macs[learns_at] <= from;
                ports[learns_at] <= source;
                used[learns_at] <= 1;
                if (!knows) oldest <= oldest + 1;
            end
        end
endmodule
