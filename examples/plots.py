"""The three pictures of a recovery: series, shared profiles, totals.

python examples/plots.py

Writes plots_series.png, plots_profiles.png and plots_totals.png.
"""

import unsum
from unsum.experiments.town import simulate_town

readings = unsum.Readings.from_frame(simulate_town(60).bills, drop_bad=True)
recovery = unsum.recover(readings, "panel", interval=0.9)
print(recovery)

recovery.plot(["C0040", "C0044"]).savefig("plots_series.png", dpi=100)
recovery.plot_totals("MS").savefig("plots_totals.png", dpi=100)
unsum.recover(readings, "nmf", rank=3).plot_profiles().savefig("plots_profiles.png", dpi=100)
