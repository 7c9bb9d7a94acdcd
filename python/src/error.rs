//! Errors as Python exceptions, with their message in Rust.

use floras_phy::UplinkError;
use floras_report::ReportError;
use floras_sim::{ExperimentError, SimError};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Conversion of an error into a Python exception.
pub(crate) trait ToPython {
    /// `ValueError` for wrong input, `OSError` for files, `RuntimeError` for anything else.
    fn to_python(self) -> PyErr;
}

impl ToPython for SimError {
    fn to_python(self) -> PyErr {
        match &self {
            Self::File { .. } => PyOSError::new_err(self.to_string()),
            error if error.is_input() => PyValueError::new_err(self.to_string()),
            _ => PyRuntimeError::new_err(self.to_string()),
        }
    }
}

impl ToPython for ExperimentError {
    fn to_python(self) -> PyErr {
        PyValueError::new_err(self.to_string())
    }
}

impl ToPython for UplinkError {
    fn to_python(self) -> PyErr {
        PyValueError::new_err(self.to_string())
    }
}

impl ToPython for ReportError {
    fn to_python(self) -> PyErr {
        if self.is_input() {
            PyValueError::new_err(self.to_string())
        } else {
            PyOSError::new_err(self.to_string())
        }
    }
}

impl ToPython for serde_json::Error {
    fn to_python(self) -> PyErr {
        PyRuntimeError::new_err(self.to_string())
    }
}
