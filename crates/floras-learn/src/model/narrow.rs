//! A fully connected layer with few outputs, on rows of samples that need not be adjacent.
//!
//! A general matrix product packs both factors first, pads ten outputs to sixteen, and requires the rows of a mini-batch
//! in contiguous memory. With ten outputs that is most of the work. Here vectors run along the features, whose number is
//! large, and rows are read in place:
//!
//! ```text
//! forward    z_cs = b_c + Σ_f w_cf·x_sf        for 5 samples × 5 outputs at a time (or 2 × 5)
//! backward   ∂w_cf = Σ_s d_cs·x_sf + 2λw_cf    for 2 vectors of features × 10 outputs at a time (or 2 × 5)
//! ```
//!
//! As in every kernel under `pulp`'s dispatch, everything below it must be inlined.

use pulp::{Arch, Simd, WithSimd};

use super::Batch;

/// Maximum number of outputs for which this is faster than a general matrix product.
pub(super) const MAX_OUTPUTS: usize = 32;

/// Whether the processor has enough vector registers for 25 sums; with fewer, ten sums are used.
#[inline(always)]
fn has_many_registers<S: Simd>() -> bool {
    S::REGISTER_COUNT >= 32
}

/// Writes `W·x + b` for every sample of a batch, output after output.
pub(super) fn forward(parameters: &[f32], batch: Batch<'_>, out: &mut [f32]) {
    Arch::new().dispatch(Forward { parameters, batch, out });
}

/// Writes the gradient of the parameters, from that of the outputs (output after output), and of `l2·‖w‖²`.
pub(super) fn backward(
    parameters: &[f32],
    batch: Batch<'_>,
    out_gradient: &[f32],
    l2: f32,
    gradient: &mut [f32],
) {
    Arch::new().dispatch(Backward { parameters, batch, out_gradient, l2, gradient });
}

struct Forward<'a> {
    parameters: &'a [f32],
    batch: Batch<'a>,
    out: &'a mut [f32],
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { parameters, batch, out } = self;
        let outputs = out.len() / batch.count();
        let (weights, biases) = parameters.split_at(outputs * batch.width());
        let (features, width) = (batch.samples.features(), batch.width());
        let projection =
            Projection { features, width, weights, biases, batch, outputs, samples: batch.count() };
        if has_many_registers::<S>() {
            projection.run::<S, 5>(simd, out);
        } else {
            projection.run::<S, 2>(simd, out);
        }
    }
}

/// The values that are constant over all samples.
#[derive(Clone, Copy)]
struct Projection<'a> {
    features: &'a [f32],
    width: usize,
    weights: &'a [f32],
    biases: &'a [f32],
    batch: Batch<'a>,
    outputs: usize,
    samples: usize,
}

impl Projection<'_> {
    /// Computes the outputs of all samples, `ROWS` samples at a time.
    #[inline(always)]
    fn run<S: Simd, const ROWS: usize>(self, simd: S, out: &mut [f32]) {
        let mut sample = 0;
        while sample + ROWS <= self.samples {
            self.project::<S, ROWS>(simd, sample, out);
            sample += ROWS;
        }
        while sample < self.samples {
            self.project::<S, 1>(simd, sample, out);
            sample += 1;
        }
    }

    /// Computes all outputs of `ROWS` samples from `sample` on, five outputs at a time.
    #[inline(always)]
    fn project<S: Simd, const ROWS: usize>(self, simd: S, sample: usize, out: &mut [f32]) {
        let mut rows: [&[f32]; ROWS] = [&[]; ROWS];
        for (place, row) in rows.iter_mut().enumerate() {
            let start = self.batch.rows[sample + place] as usize * self.width;
            *row = &self.features[start..start + self.width];
        }
        let mut output = 0;
        while output + 5 <= self.outputs {
            let sums = inner_products::<S, ROWS, 5>(simd, &self.weights[output * self.width..], rows);
            self.store(sums, output, sample, out);
            output += 5;
        }
        while output < self.outputs {
            let sums = inner_products::<S, ROWS, 1>(simd, &self.weights[output * self.width..], rows);
            self.store(sums, output, sample, out);
            output += 1;
        }
    }

    /// Adds the biases and writes the sums to their places in `out`.
    #[inline(always)]
    fn store<const ROWS: usize, const COUNT: usize>(
        self,
        sums: [[f32; ROWS]; COUNT],
        output: usize,
        sample: usize,
        out: &mut [f32],
    ) {
        for (place, sums) in sums.iter().enumerate() {
            let (at, bias) = ((output + place) * self.samples + sample, self.biases[output + place]);
            for (out, &sum) in out[at..at + ROWS].iter_mut().zip(sums) {
                *out = sum + bias;
            }
        }
    }
}

/// `wᵀx` for `COUNT` rows of weights and `ROWS` samples.
#[inline(always)]
fn inner_products<S: Simd, const ROWS: usize, const COUNT: usize>(
    simd: S,
    weights: &[f32],
    rows: [&[f32]; ROWS],
) -> [[f32; ROWS]; COUNT] {
    let features = rows[0].len();
    let mut weight_heads: [&[S::f32s]; COUNT] = [&[]; COUNT];
    let mut weight_tails: [&[f32]; COUNT] = [&[]; COUNT];
    for output in 0..COUNT {
        (weight_heads[output], weight_tails[output]) =
            S::as_simd_f32s(&weights[output * features..][..features]);
    }
    let mut row_heads: [&[S::f32s]; ROWS] = [&[]; ROWS];
    let mut row_tails: [&[f32]; ROWS] = [&[]; ROWS];
    for row in 0..ROWS {
        (row_heads[row], row_tails[row]) = S::as_simd_f32s(rows[row]);
    }
    let vectors = row_heads[0].len();
    // Slices of equal length let the compiler remove the bounds check in every step.
    for head in &mut weight_heads {
        *head = &head[..vectors];
    }
    for head in &mut row_heads {
        *head = &head[..vectors];
    }
    let mut sums = [[simd.splat_f32s(0.0); ROWS]; COUNT];
    for vector in 0..vectors {
        for output in 0..COUNT {
            for row in 0..ROWS {
                let (weight, feature) = (weight_heads[output][vector], row_heads[row][vector]);
                sums[output][row] = simd.mul_add_f32s(weight, feature, sums[output][row]);
            }
        }
    }
    if !row_tails[0].is_empty() {
        for output in 0..COUNT {
            let weight = simd.partial_load_f32s(weight_tails[output]);
            for row in 0..ROWS {
                let feature = simd.partial_load_f32s(row_tails[row]);
                sums[output][row] = simd.mul_add_f32s(weight, feature, sums[output][row]);
            }
        }
    }
    let mut reduced = [[0.0; ROWS]; COUNT];
    for output in 0..COUNT {
        for row in 0..ROWS {
            reduced[output][row] = simd.reduce_sum_f32s(sums[output][row]);
        }
    }
    reduced
}

struct Backward<'a> {
    parameters: &'a [f32],
    batch: Batch<'a>,
    out_gradient: &'a [f32],
    l2: f32,
    gradient: &'a mut [f32],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { parameters, batch, out_gradient, l2, gradient } = self;
        let (samples, features) = (batch.count(), batch.width());
        let outputs = out_gradient.len() / samples;
        let (weights, biases) = gradient.split_at_mut(outputs * features);
        for (output, bias) in biases.iter_mut().enumerate() {
            let mut sum = 0.0;
            for &gradient in &out_gradient[output * samples..][..samples] {
                sum += gradient;
            }
            *bias = (2.0 * l2).mul_add(parameters[outputs * features + output], sum);
        }
        let accumulation = Accumulation { parameters, batch, l2, samples, features };
        let mut first = 0;
        while first < outputs {
            let out_gradient = &out_gradient[first * samples..];
            let weights = &mut weights[first * features..];
            if has_many_registers::<S>() && first + 10 <= outputs {
                accumulation.run::<S, 10>(simd, first, out_gradient, weights);
                first += 10;
            } else if first + 5 <= outputs {
                accumulation.run::<S, 5>(simd, first, out_gradient, weights);
                first += 5;
            } else {
                accumulation.run::<S, 1>(simd, first, out_gradient, weights);
                first += 1;
            }
        }
    }
}

/// The values that are constant over all outputs.
#[derive(Clone, Copy)]
struct Accumulation<'a> {
    parameters: &'a [f32],
    batch: Batch<'a>,
    l2: f32,
    samples: usize,
    features: usize,
}

impl Accumulation<'_> {
    /// The gradients of `COUNT` rows of weights from `first` on; `slopes` and `weights` begin there.
    #[inline(always)]
    fn run<S: Simd, const COUNT: usize>(self, simd: S, first: usize, slopes: &[f32], weights: &mut [f32]) {
        let lanes = size_of::<S::f32s>() / size_of::<f32>();
        let parameters = &self.parameters[first * self.features..];
        let mut feature = 0;
        while feature + 2 * lanes <= self.features {
            self.sum_vectors::<S, COUNT, 2>(simd, feature, lanes, parameters, slopes, weights);
            feature += 2 * lanes;
        }
        while feature < self.features {
            let length = lanes.min(self.features - feature);
            self.sum_vectors::<S, COUNT, 1>(simd, feature, length, parameters, slopes, weights);
            feature += length;
        }
    }

    /// The sums of `VECTORS` vectors of `length` features each; `length` is less than a vector only at the end of a row.
    #[inline(always)]
    fn sum_vectors<S: Simd, const COUNT: usize, const VECTORS: usize>(
        self,
        simd: S,
        feature: usize,
        length: usize,
        parameters: &[f32],
        slopes: &[f32],
        weights: &mut [f32],
    ) {
        let mut sums = [[simd.splat_f32s(0.0); COUNT]; VECTORS];
        for (vector, sums) in sums.iter_mut().enumerate() {
            *sums = self.decayed(simd, parameters, feature + vector * length, length);
        }
        self.add_samples::<S, COUNT, VECTORS>(simd, feature, length, slopes, &mut sums);
        for (vector, sums) in sums.iter().enumerate() {
            self.store(simd, *sums, feature + vector * length, length, weights);
        }
    }

    /// `2λw`, the initial value of the sums.
    #[inline(always)]
    fn decayed<S: Simd, const COUNT: usize>(
        self,
        simd: S,
        parameters: &[f32],
        feature: usize,
        length: usize,
    ) -> [S::f32s; COUNT] {
        let decay = simd.splat_f32s(2.0 * self.l2);
        let mut sums = [decay; COUNT];
        for (output, sum) in sums.iter_mut().enumerate() {
            let at = output * self.features + feature;
            *sum = simd.mul_f32s(decay, load(simd, &parameters[at..at + length]));
        }
        sums
    }

    /// Adds `d·x` over the samples.
    #[inline(always)]
    fn add_samples<S: Simd, const COUNT: usize, const VECTORS: usize>(
        self,
        simd: S,
        feature: usize,
        length: usize,
        slopes: &[f32],
        sums: &mut [[S::f32s; COUNT]; VECTORS],
    ) {
        let samples = self.samples;
        let mut slopes_of: [&[f32]; COUNT] = [&[]; COUNT];
        for (output, slopes_of) in slopes_of.iter_mut().enumerate() {
            *slopes_of = &slopes[output * samples..][..samples];
        }
        let (features, rows) = (self.batch.samples.features(), &self.batch.rows[..samples]);
        let mut totals = *sums;
        for sample in 0..samples {
            let start = rows[sample] as usize * self.features + feature;
            let values = &features[start..start + VECTORS * length];
            let mut loaded = [simd.splat_f32s(0.0); VECTORS];
            match S::as_simd_f32s(values) {
                (whole, []) => loaded.copy_from_slice(&whole[..VECTORS]),
                _ => loaded[0] = simd.partial_load_f32s(values),
            }
            for output in 0..COUNT {
                let slope = simd.splat_f32s(slopes_of[output][sample]);
                for vector in 0..VECTORS {
                    totals[vector][output] = simd.mul_add_f32s(slope, loaded[vector], totals[vector][output]);
                }
            }
        }
        *sums = totals;
    }

    #[inline(always)]
    fn store<S: Simd, const COUNT: usize>(
        self,
        simd: S,
        sums: [S::f32s; COUNT],
        feature: usize,
        length: usize,
        weights: &mut [f32],
    ) {
        for (output, &sum) in sums.iter().enumerate() {
            let at = output * self.features + feature;
            let place = &mut weights[at..at + length];
            match S::as_mut_simd_f32s(place) {
                ([whole], []) => *whole = sum,
                _ => simd.partial_store_f32s(place, sum),
            }
        }
    }
}

/// A whole vector, or the rest of a row.
#[inline(always)]
fn load<S: Simd>(simd: S, values: &[f32]) -> S::f32s {
    match S::as_simd_f32s(values) {
        ([whole], []) => *whole,
        _ => simd.partial_load_f32s(values),
    }
}
