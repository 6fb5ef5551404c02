"""Which array to build: the cheapest, or the fastest, that meets a need, how sure that is, and what would change it.

`need` is the file, `load` reads it, `candidates` lists what could be built, `cells` simulates, `decide` tells apart,
`answer` says it as a document, with `words`, `build` (commands) and `study_file`.

Invariants:

- What an answer rests on can be simulated again: the same need and seed give the same answer.
- Nothing is built, and no disk is touched.

References: S.-H. Kim and B. L. Nelson 2001 and S. Andradottir and S.-H. Kim 2010 (`raidlab.stats.selection`). The
question is that of G. A. Alvarez et al., *Minerva: An Automated Resource Provisioning Tool for Large-Scale Storage
Systems*, ACM Transactions on Computer Systems 19(4), 2001.
"""

from raidlab.recommend.load import LoadedNeed, load_need, need_of
from raidlab.recommend.make import make_recommendation, write_recommendation

__all__ = ["LoadedNeed", "load_need", "make_recommendation", "need_of", "write_recommendation"]
