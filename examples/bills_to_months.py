"""Bills on twenty reading routes to calendar months: what utilities call unbilled energy.

python examples/bills_to_months.py
"""

from unsum import Readings, recover
from unsum.experiments.town import simulate_town

town = simulate_town(n_customers=100, n_days=300)
readings = Readings.from_frame(town.bills, drop_bad=True)
recovery = recover(readings)
months = recovery.totals("MS", backend="pyarrow")
by_month = months.group_by("start").aggregate([("total", "sum"), ("covered", "mean")])
print("month        kWh of the town   read so far")
for row in by_month.sort_by("start").to_pylist():
    print(f"{row['start']}   {row['total_sum']:>15,.0f}   {row['covered_mean']:>11.0%}")
