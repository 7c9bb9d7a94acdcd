//! The Python module `floras._core`: the program's Rust code for Python.
//!
//! Arrays are read without a copy, and the interpreter is released meanwhile. Another thread must not write to an array during a
//! call: the result would be undefined.

mod audit;
mod compare;
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
mod views;

use pyo3::prelude::*;

/// The core of `floras`, written in Rust.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", floras_sim::VERSION)?;
    module.add("VIEWS", views::names())?;
    module.add_function(wrap_pyfunction!(views::view_name, module)?)?;
    module.add_function(wrap_pyfunction!(views::default_view, module)?)?;
    module.add_function(wrap_pyfunction!(views::verdict, module)?)?;
    module.add_function(wrap_pyfunction!(views::verdict_scale, module)?)?;
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
    module.add_function(wrap_pyfunction!(audit::audit, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare, module)?)?;
    module.add_function(wrap_pyfunction!(run::experiment, module)?)?;
    module.add_function(wrap_pyfunction!(run::presets, module)?)?;
    module.add_function(wrap_pyfunction!(run::report, module)?)?;
    module.add_function(wrap_pyfunction!(run::estimate, module)?)?;
    module.add_function(wrap_pyfunction!(run::estimate_text, module)?)?;
    module.add_function(wrap_pyfunction!(run::percentage, module)?)?;
    module.add_function(wrap_pyfunction!(run::check_threads, module)?)?;
    module.add_class::<sweep::Grid>()?;
    module.add_function(wrap_pyfunction!(data::digits20, module)?)?;
    module.add_function(wrap_pyfunction!(data::federate, module)?)?;
    module.add_class::<data::OwnArrays>()?;
    module.add_function(wrap_pyfunction!(data::check_rows, module)?)?;
    module.add_function(wrap_pyfunction!(data::partition, module)?)?;
    module.add_function(wrap_pyfunction!(data::select, module)?)?;
    Ok(())
}
