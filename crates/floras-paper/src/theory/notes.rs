//! Errors of the printed theorem and its proof, in words. Those that can be computed have a test in `tests/theory.rs`.

/// Errors of the proof that matter whenever there is noise.
pub const PROOF: [&str; 5] = [
    "the bound is not proven for any D: the cross term of the proof contains E‖u − w*‖, but the proof continues with its square, \
     which is smaller where the distance is below 1. Convergence to within a floor can be proved; convergence as O(1/t) cannot",
    "clamping is not the truncated distribution of the proof: values beyond ±B are set to ±B and not drawn again, which biases every \
     sum towards 0. At the optimum the biases of single rounds need not cancel, so that training can converge to another point",
    "D(γ) as printed is below the second moment for every sum: it takes atan((B+C)/γ) where at most atan(B/γ) is allowed, and a \
     sum of K updates reaches K·C, not C. It falls again for large γ and turns negative near γ² = (B+C)³/(3C); it is not increasing",
    "when E > 1 the cross term is twice what is printed: the lemma on the noise bounds its root mean square by 2√(dD)·EHη/K, and the \
     factor 2 of the scalar product comes on top; 2√(dD)·EHη/K in all is right only for a rate that is constant within a round",
    "the paper's server adds the decoded sum of w_t − w_{t+1}^k to the model; it must be subtracted, and is here",
];

/// Errors of the statement, for every experiment with or without noise.
pub const STATEMENT: [&str; 3] = [
    "the theorem states \"for some r ≥ 0\"; its lemmas need r ≥ max(8L/μ', E), which is what is used here",
    "Assumptions 1 and 2 print f_k where its gradient is meant, and H_k is never defined; it is read as H for client k alone",
    "Assumption 4 contradicts Assumption 2 on the whole space; and C_max is the longest of K updates, so that H must bound every \
     mini-batch gradient and not only its mean square. H is measured here, not proved",
];

/// The theorem omits the clients' gains, and all noise other than that of the unused sequences.
pub const HIGH_SNR: &str = "the theorem sets every client's gain to 1 and omits the noise of the used sequences; over a fading channel, gains differ \
                            from 1 and there is more noise";

/// The sum itself is clamped.
pub const SUM_BEYOND_BOUND: &str = "K·C is above B: if the updates agree, the sum itself is clamped, with or without noise, and more clients do not \
                                    help; B must grow with K·C";

/// Mini-batches of an epoch are not independent draws.
pub const SHUFFLED: &str = "an epoch repeats no sample, so that Assumption 3 fails after its first step; theorem and recursion are for fresh \
                            mini-batches (local.steps=1, or batches as large as a client)";
