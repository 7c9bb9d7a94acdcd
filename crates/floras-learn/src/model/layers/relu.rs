//! Rectified linear units, in place.
//!
//! ```text
//! y = max(0, x),     ∂x = ∂y·[y > 0]
//! ```
//!
//! Shapes stay as they are. NaN stays NaN.

/// `x → max(0, x)`.
pub(super) fn forward(values: &mut [f32]) {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            for value in values {
                // Not `max`, which would discard NaN.
                *value = if *value < 0.0 { 0.0 } else { *value };
            }
        },
    );
}

/// Sets the gradient to zero where the unit is zero.
pub(super) fn backward(outputs: &[f32], gradient: &mut [f32]) {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            for (gradient, &output) in gradient.iter_mut().zip(outputs) {
                *gradient = if output == 0.0 { 0.0 } else { *gradient };
            }
        },
    );
}
