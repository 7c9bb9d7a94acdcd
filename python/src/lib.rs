//! The Python module `floras._core`: the same Rust code as the program's, handed to Python.
//!
//! Arrays are read where NumPy has them, and the interpreter is free for other threads while we work. Whoever writes into an
//! array in the meantime gets what they deserve.

mod convert;
mod data;
mod error;
mod ledger;
mod number;
mod observer;
mod privacy;
mod run;
mod sweep;
mod threads;
mod updates;
mod uplink;

use pyo3::prelude::*;

/// The core of `floras`, written in Rust.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", floras_sim::VERSION)?;
    module.add_class::<uplink::Uplink>()?;
    module.add_class::<uplink::Aggregate>()?;
    module.add_class::<uplink::Channel>()?;
    module.add_class::<ledger::Ledger>()?;
    module.add_function(wrap_pyfunction!(updates::clip, module)?)?;
    module.add_function(wrap_pyfunction!(privacy::account, module)?)?;
    module.add_function(wrap_pyfunction!(privacy::calibrate, module)?)?;
    module.add_function(wrap_pyfunction!(privacy::account_experiment, module)?)?;
    module.add_function(wrap_pyfunction!(privacy::calibrate_experiment, module)?)?;
    module.add_function(wrap_pyfunction!(privacy::epsilon_curve, module)?)?;
    module.add_function(wrap_pyfunction!(privacy::delta_curve, module)?)?;
    module.add_function(wrap_pyfunction!(privacy::curve, module)?)?;
    module.add_function(wrap_pyfunction!(privacy::losses, module)?)?;
    module.add_function(wrap_pyfunction!(privacy::check_losses, module)?)?;
    module.add_function(wrap_pyfunction!(privacy::compose, module)?)?;
    module.add_function(wrap_pyfunction!(privacy::group, module)?)?;
    module.add_function(wrap_pyfunction!(privacy::statement, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(run::experiment, module)?)?;
    module.add_function(wrap_pyfunction!(run::presets, module)?)?;
    module.add_function(wrap_pyfunction!(run::report, module)?)?;
    module.add_function(wrap_pyfunction!(run::estimate, module)?)?;
    module.add_class::<sweep::Grid>()?;
    module.add_function(wrap_pyfunction!(data::digits20, module)?)?;
    module.add_function(wrap_pyfunction!(data::federate, module)?)?;
    Ok(())
}
