"""Accuracy and privacy against the number of unused sequences, as a script with cells."""

# %% [markdown]
# # Accuracy and privacy against the number of unused sequences
#
# In FLORAS, K clients send at the same time, each with its own spreading sequence. The base station sums
# over all N sequences, because it does not know which ones are in use. The γ = N − K unused sequences add
# noise to the sum: more of them mean less accuracy and more privacy. This script plots both.
#
#     pip install "./python[matplotlib]"
#     python examples/unused_sequences.py
#
# Editors that support `# %%` cells can run it cell by cell.

# %%
import time
from pathlib import Path

import matplotlib.pyplot as plt

import floras

CLIENTS = 200
LENGTH = 1024  # chips in a sequence; there cannot be more sequences than chips
TRIALS = 5
GAMMAS = [0, 5, 10, 20, 40, 80, 160, 320, 640]
PICTURE = Path("unused-sequences.png")

# %% [markdown]
# ## One experiment for every γ
#
# `quick` is a preset: 200 clients with 20 digits each, a logistic model, 40 rounds, updates clipped to norm
# 1, and the clipped projector as the receiver. `settings` changes single keys, as `floras run --set` does.
# The length is the same for all γ, so that only the unused sequences change. Trials run on all cores.

# %%
begin = time.perf_counter()
runs = {
    gamma: floras.run(
        "quick", trials=TRIALS, settings={"uplink.sequences": CLIENTS + gamma, "uplink.length": LENGTH}
    )
    for gamma in GAMMAS
}
ideal = floras.run("quick", trials=TRIALS, settings={"uplink.scheme": "ideal"})
print(f"{len(runs) + 1} experiments of {TRIALS} trials in {time.perf_counter() - begin:.0f} s")

# %% [markdown]
# ## The numbers
#
# The accuracy is a mean over the trials with its 95 % interval. Every epsilon belongs to a view, that is, to
# an adversary. "none" means that no finite epsilon is established.

# %%
SHOWN = ["any-channel", "actual", "idealised", "published"]
print(f"{'gamma':>5} {'accuracy':>16}  " + " ".join(f"{view:>12}" for view in SHOWN))
for gamma, run in runs.items():
    columns = [f"{value:.4g}" if (value := run.epsilon(view)) is not None else "none" for view in SHOWN]
    print(f"{gamma:>5} {run.final.test_accuracy!s:>16}  " + " ".join(f"{column:>12}" for column in columns))

# %% [markdown]
# ## The plot
#
# Left: the accuracy that unused sequences cost. Right: the privacy that they provide, by view.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")

means = [100 * run.final.test_accuracy.mean for run in runs.values()]
intervals = [100 * run.final.test_accuracy.ci95 for run in runs.values()]
left.errorbar(GAMMAS, means, yerr=intervals, fmt="o-", capsize=4, color="tab:blue", label="FLORAS")
without = 100 * ideal.final.test_accuracy.mean
left.axhline(without, color="tab:gray", linestyle="--", label="exact sum, no radio")
left.set_ylabel("test accuracy after 40 rounds (%)")
left.set_title("Accuracy by number of unused sequences")
left.legend(loc="lower left")

STYLES = {
    "any-channel": ("^-", "tab:red", "any channel: a base station that chooses them"),
    "actual": ("s-", "tab:orange", "actual: a base station with all estimates"),
    "idealised": ("x--", "tab:green", "idealised: the same, at high SNR"),
    "published": ("d:", "tab:gray", "published: the paper's formula, no guarantee"),
}
for view, (style, colour, label) in STYLES.items():
    points = [(gamma, value) for gamma, run in runs.items() if (value := run.epsilon(view)) is not None]
    right.plot(*zip(*points, strict=True), style, color=colour, label=label, markersize=6)
right.set_yscale("log")
right.set_ylabel("ε after 40 rounds, at δ = 10⁻⁵ (smaller is more private)")
right.set_title("Privacy by number of unused sequences and view")
right.legend(loc="upper right", fontsize=9)

for axes in (left, right):
    axes.set_xscale("symlog", linthresh=5, linscale=0.3)
    axes.set_xticks(GAMMAS, [str(gamma) for gamma in GAMMAS])
    axes.minorticks_off()
    axes.set_xlim(-1.5, 900)
    axes.set_xlabel("γ, unused sequences")
    axes.grid(alpha=0.3)

caption = (
    f"{CLIENTS} clients, all in every round, clip norm 1, clipped projector (c = 2), phases corrected, "
    f"Rayleigh fading, 20 dB, sequences of {LENGTH} chips.\n"
    f"Means of {TRIALS} trials with 95 % intervals. Without unused sequences only the actual view, of those "
    "shown, has an ε.\n"
    "Not shown: a base station that keeps its raw samples. Unused sequences do not hinder it, and "
    "no useful ε is established."
)
figure.supxlabel(
    caption,
    fontsize=9,
    x=0.02,
    ha="left",
)
figure.savefig(PICTURE, dpi=150)
print(f"wrote {PICTURE}")
