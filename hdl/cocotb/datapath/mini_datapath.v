// Small model of the reference switch: arbiter, lookup, the generated accelerator, output queues.
module mini_datapath (
    input wire axis_aclk,
    input wire axis_resetn,
    // The four network ports and the host's port.
    input wire [255:0] s_axis_0_tdata,
    input wire [31:0] s_axis_0_tkeep,
    input wire [127:0] s_axis_0_tuser,
    input wire s_axis_0_tvalid,
    output wire s_axis_0_tready,
    input wire s_axis_0_tlast,
    input wire [255:0] s_axis_1_tdata,
    input wire [31:0] s_axis_1_tkeep,
    input wire [127:0] s_axis_1_tuser,
    input wire s_axis_1_tvalid,
    output wire s_axis_1_tready,
    input wire s_axis_1_tlast,
    input wire [255:0] s_axis_2_tdata,
    input wire [31:0] s_axis_2_tkeep,
    input wire [127:0] s_axis_2_tuser,
    input wire s_axis_2_tvalid,
    output wire s_axis_2_tready,
    input wire s_axis_2_tlast,
    input wire [255:0] s_axis_3_tdata,
    input wire [31:0] s_axis_3_tkeep,
    input wire [127:0] s_axis_3_tuser,
    input wire s_axis_3_tvalid,
    output wire s_axis_3_tready,
    input wire s_axis_3_tlast,
    input wire [255:0] s_axis_4_tdata,
    input wire [31:0] s_axis_4_tkeep,
    input wire [127:0] s_axis_4_tuser,
    input wire s_axis_4_tvalid,
    output wire s_axis_4_tready,
    input wire s_axis_4_tlast,
    output wire [255:0] m_axis_0_tdata,
    output wire [31:0] m_axis_0_tkeep,
    output wire [127:0] m_axis_0_tuser,
    output wire m_axis_0_tvalid,
    input wire m_axis_0_tready,
    output wire m_axis_0_tlast,
    output wire [255:0] m_axis_1_tdata,
    output wire [31:0] m_axis_1_tkeep,
    output wire [127:0] m_axis_1_tuser,
    output wire m_axis_1_tvalid,
    input wire m_axis_1_tready,
    output wire m_axis_1_tlast,
    output wire [255:0] m_axis_2_tdata,
    output wire [31:0] m_axis_2_tkeep,
    output wire [127:0] m_axis_2_tuser,
    output wire m_axis_2_tvalid,
    input wire m_axis_2_tready,
    output wire m_axis_2_tlast,
    output wire [255:0] m_axis_3_tdata,
    output wire [31:0] m_axis_3_tkeep,
    output wire [127:0] m_axis_3_tuser,
    output wire m_axis_3_tvalid,
    input wire m_axis_3_tready,
    output wire m_axis_3_tlast,
    input wire [11:0] S_AXI_AWADDR,
    input wire S_AXI_AWVALID,
    output wire S_AXI_AWREADY,
    input wire [31:0] S_AXI_WDATA,
    input wire [3:0] S_AXI_WSTRB,
    input wire S_AXI_WVALID,
    output wire S_AXI_WREADY,
    output wire [1:0] S_AXI_BRESP,
    output wire S_AXI_BVALID,
    input wire S_AXI_BREADY,
    input wire [11:0] S_AXI_ARADDR,
    input wire S_AXI_ARVALID,
    output wire S_AXI_ARREADY,
    output wire [31:0] S_AXI_RDATA,
    output wire [1:0] S_AXI_RRESP,
    output wire S_AXI_RVALID,
    input wire S_AXI_RREADY,
    // Number of packets dropped at each output queue.
    output wire [127:0] dropped
);
    wire [255:0] arbiter_tdata;
    wire [31:0] arbiter_tkeep;
    wire [127:0] arbiter_tuser;
    wire arbiter_tvalid, arbiter_tready, arbiter_tlast;
    wire [255:0] accel_tdata;
    wire [31:0] accel_tkeep;
    wire [127:0] accel_tuser;
    wire accel_tvalid, accel_tready, accel_tlast;
    wire [255:0] lookup_tdata;
    wire [31:0] lookup_tkeep;
    wire [127:0] lookup_tuser;
    wire lookup_tvalid, lookup_tready, lookup_tlast;

    input_arbiter arbiter (
        .axis_aclk(axis_aclk),
        .axis_resetn(axis_resetn),
        .s_tdata({s_axis_4_tdata, s_axis_3_tdata, s_axis_2_tdata, s_axis_1_tdata, s_axis_0_tdata}),
        .s_tkeep({s_axis_4_tkeep, s_axis_3_tkeep, s_axis_2_tkeep, s_axis_1_tkeep, s_axis_0_tkeep}),
        .s_tuser({s_axis_4_tuser, s_axis_3_tuser, s_axis_2_tuser, s_axis_1_tuser, s_axis_0_tuser}),
        .s_tvalid({s_axis_4_tvalid, s_axis_3_tvalid, s_axis_2_tvalid, s_axis_1_tvalid, s_axis_0_tvalid}),
        .s_tready({s_axis_4_tready, s_axis_3_tready, s_axis_2_tready, s_axis_1_tready, s_axis_0_tready}),
        .s_tlast({s_axis_4_tlast, s_axis_3_tlast, s_axis_2_tlast, s_axis_1_tlast, s_axis_0_tlast}),
        .m_tdata(arbiter_tdata),
        .m_tkeep(arbiter_tkeep),
        .m_tuser(arbiter_tuser),
        .m_tvalid(arbiter_tvalid),
        .m_tready(arbiter_tready),
        .m_tlast(arbiter_tlast)
    );

    output_port_lookup lookup (
        .axis_aclk(axis_aclk),
        .axis_resetn(axis_resetn),
        .s_tdata(arbiter_tdata),
        .s_tkeep(arbiter_tkeep),
        .s_tuser(arbiter_tuser),
        .s_tvalid(arbiter_tvalid),
        .s_tready(arbiter_tready),
        .s_tlast(arbiter_tlast),
        .m_tdata(lookup_tdata),
        .m_tkeep(lookup_tkeep),
        .m_tuser(lookup_tuser),
        .m_tvalid(lookup_tvalid),
        .m_tready(lookup_tready),
        .m_tlast(lookup_tlast)
    );

    iswitch_accel accelerator (
        .axis_aclk(axis_aclk),
        .axis_resetn(axis_resetn),
        .s_axis_tdata(lookup_tdata),
        .s_axis_tkeep(lookup_tkeep),
        .s_axis_tuser(lookup_tuser),
        .s_axis_tvalid(lookup_tvalid),
        .s_axis_tready(lookup_tready),
        .s_axis_tlast(lookup_tlast),
        .m_axis_tdata(accel_tdata),
        .m_axis_tkeep(accel_tkeep),
        .m_axis_tuser(accel_tuser),
        .m_axis_tvalid(accel_tvalid),
        .m_axis_tready(accel_tready),
        .m_axis_tlast(accel_tlast),
        .S_AXI_AWADDR(S_AXI_AWADDR),
        .S_AXI_AWVALID(S_AXI_AWVALID),
        .S_AXI_AWREADY(S_AXI_AWREADY),
        .S_AXI_WDATA(S_AXI_WDATA),
        .S_AXI_WSTRB(S_AXI_WSTRB),
        .S_AXI_WVALID(S_AXI_WVALID),
        .S_AXI_WREADY(S_AXI_WREADY),
        .S_AXI_BRESP(S_AXI_BRESP),
        .S_AXI_BVALID(S_AXI_BVALID),
        .S_AXI_BREADY(S_AXI_BREADY),
        .S_AXI_ARADDR(S_AXI_ARADDR),
        .S_AXI_ARVALID(S_AXI_ARVALID),
        .S_AXI_ARREADY(S_AXI_ARREADY),
        .S_AXI_RDATA(S_AXI_RDATA),
        .S_AXI_RRESP(S_AXI_RRESP),
        .S_AXI_RVALID(S_AXI_RVALID),
        .S_AXI_RREADY(S_AXI_RREADY)
    );

    output_queues queues (
        .axis_aclk(axis_aclk),
        .axis_resetn(axis_resetn),
        .s_tdata(accel_tdata),
        .s_tkeep(accel_tkeep),
        .s_tuser(accel_tuser),
        .s_tvalid(accel_tvalid),
        .s_tready(accel_tready),
        .s_tlast(accel_tlast),
        .m_tdata({m_axis_3_tdata, m_axis_2_tdata, m_axis_1_tdata, m_axis_0_tdata}),
        .m_tkeep({m_axis_3_tkeep, m_axis_2_tkeep, m_axis_1_tkeep, m_axis_0_tkeep}),
        .m_tuser({m_axis_3_tuser, m_axis_2_tuser, m_axis_1_tuser, m_axis_0_tuser}),
        .m_tvalid({m_axis_3_tvalid, m_axis_2_tvalid, m_axis_1_tvalid, m_axis_0_tvalid}),
        .m_tready({m_axis_3_tready, m_axis_2_tready, m_axis_1_tready, m_axis_0_tready}),
        .m_tlast({m_axis_3_tlast, m_axis_2_tlast, m_axis_1_tlast, m_axis_0_tlast}),
        .dropped(dropped)
    );
endmodule
