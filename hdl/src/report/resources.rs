//! Resource use of a build.

use std::collections::BTreeMap;

use serde::Serialize;

/// Resources that a netlist uses, that a device provides, or that a limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Resources {
    /// Number of LUTs, including those used as distributed RAM and as shift registers.
    pub lut: u32,
    /// Number of flip-flops.
    pub ff: u32,
    /// Number of 36 Kbit block RAMs. An 18 Kbit block RAM counts as 0.5.
    pub bram36: f64,
    /// Number of DSP48E1 slices.
    pub dsp: u32,
}

/// LUTs that a netlist uses, by purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LutUse {
    /// Number of LUT1 to LUT6 and INV cells.
    pub cells: u32,
    /// Estimated number of LUTs that implement `cells`. Two cells with at most five inputs in total can share a LUT,
    /// because a LUT has two outputs.
    pub logic: u32,
    /// Number of LUTs used as distributed RAM.
    pub memory: u32,
    /// Number of LUTs used as shift registers.
    pub shift: u32,
}

/// Resources that the paper's accelerator adds to the NetFPGA-SUME reference switch. The paper states 18.6 % of the
/// LUTs, 17.3 % of the FFs, 44.5 % of the block RAMs, and 17 DSPs. We assume that the percentages are relative to the
/// reference switch, which uses 43,218 LUTs, 64,886 FFs and 204.5 block RAMs of 36 Kbit.
pub const PAPER: Resources = Resources { lut: 8_039, ff: 11_225, bram36: 91.0, dsp: 17 };
/// Total resources of an xc7vx690t, the FPGA of the NetFPGA-SUME.
pub const DEVICE: Resources = Resources { lut: 433_200, ff: 866_400, bram36: 1_470.0, dsp: 3_600 };

impl LutUse {
    /// Computes the LUT use from `counts`, the number of cells of each primitive.
    pub fn of(counts: &BTreeMap<String, u32>) -> Self {
        let of = |name: &str| counts.get(name).copied().unwrap_or(0);
        let lut1 = of("LUT1") + of("INV");
        let (lut2, lut3, lut4) = (of("LUT2"), of("LUT3"), of("LUT4"));
        let cells = lut1 + lut2 + lut3 + lut4 + of("LUT5") + of("LUT6");
        // LUT1 cells share LUTs with LUT4 cells, and LUT2 cells with LUT3 cells. The remaining LUT1 and LUT2 cells
        // share LUTs with each other.
        let one_with_four = lut1.min(lut4);
        let two_with_three = lut2.min(lut3);
        let small = lut1 - one_with_four + lut2 - two_with_three;
        Self {
            cells,
            logic: cells - one_with_four - two_with_three - small / 2,
            memory: 2 * (of("RAM32X1D") + of("RAM64X1D"))
                + 4 * (of("RAM32M") + of("RAM64M") + of("RAM128X1D")),
            shift: of("SRL16E") + of("SRLC32E"),
        }
    }

    /// Returns the total number of LUTs used for logic, distributed RAM and shift registers.
    pub fn total(self) -> u32 {
        self.logic + self.memory + self.shift
    }
}

impl Resources {
    /// Computes the resource use from `counts`, the number of cells of each primitive.
    pub fn of(counts: &BTreeMap<String, u32>) -> Self {
        let of = |name: &str| counts.get(name).copied().unwrap_or(0);
        Self {
            lut: LutUse::of(counts).total(),
            ff: ["FDRE", "FDSE", "FDCE", "FDPE"].into_iter().map(of).sum(),
            bram36: f64::from(of("RAMB36E1")) + f64::from(of("RAMB18E1")) / 2.0,
            dsp: of("DSP48E1"),
        }
    }

    /// Returns the name and value of each figure, in the order in which reports print them.
    pub fn named(self) -> [(&'static str, f64); 4] {
        [("LUT", self.lut.into()), ("FF", self.ff.into()), ("BRAM36", self.bram36), ("DSP", self.dsp.into())]
    }
}
