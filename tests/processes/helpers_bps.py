"""What `test_bps.py` and other test modules share."""

import pdmp


class Quartic(pdmp.Model):
    """U = Σ xⱼ⁴ / 4 + xⱼ² / 2; nothing is known of its derivatives along a ray."""

    no_fields: int

    def __init__(self):
        super().__init__(dim=2)
        self.no_fields = 0

    @pdmp.compiled
    def potential(self, x):
        return 0.25 * (x[0] ** 4 + x[1] ** 4) + 0.5 * (x[0] ** 2 + x[1] ** 2)

    @pdmp.compiled
    def add_gradient(self, x, out):
        for j in range(2):
            out[j] += x[j] ** 3 + x[j]
