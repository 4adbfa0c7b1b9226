"""English words that nearly every text holds: asking for them finds nothing in particular.

`may` and `will` are a month and a name besides; `may` is kept as a word worth asking for.
"""

from __future__ import annotations

_WORDS = """
a about above after again against all also am an and any are aren as at be because been before
being below between both but by can cannot could couldn did didn do does doesn doing don down
during each either else ever few for from further get gets getting give given go goes going got
had hadn has hasn have haven having he hence her here hers herself him himself his how however
i if in into is isn it its itself just let like ll many me more most much my myself neither no
nor not now of off on once only or other our ours ourselves out over own please re s same shall
she should shouldn so some such t tell than that the their theirs them themselves then there
these they this those through thus to too under until up upon us ve very was wasn we were weren
what whatever when whenever where wherever whether which while who whoever whom whose why will
with within without won would wouldn yes yet you your yours yourself yourselves
"""

STOP_WORDS = frozenset(_WORDS.split())
