"""Which variants may run: every state of a plan and its evaluation, one row each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servingplan.planning.acceptance import Evaluation, Missing, Variants, Verdict, accept
from servingplan.planning.reasons import Reason

OLD, NEW, OTHER = "sha256:old", "sha256:new", "sha256:other"

EDITED = Variants(stated=NEW, running=OLD)
UNEDITED = Variants(stated=OLD, running=OLD)
UNTOLD = Variants(stated=NEW)
FIRST = Variants(stated=NEW, first=True)
BACK = Variants(stated=NEW, running=OLD, before=NEW)


def measured(verdict=None, variant=NEW, **changes):
    return Evaluation(variant=variant, verdict=verdict, **changes)


PASSED, FAILED, UNCLEAR = (measured(verdict) for verdict in (Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE))

HELD = [
    pytest.param(EDITED, Missing.ABSENT, Reason.NO_EVALUATION, id="no evaluation"),
    pytest.param(EDITED, Missing.UNREADABLE, Reason.EVALUATION_UNREADABLE, id="an evaluation that cannot be read"),
    pytest.param(EDITED, Evaluation(), Reason.EVALUATION_RUNNING, id="an evaluation that has not begun"),
    pytest.param(EDITED, measured(), Reason.EVALUATION_RUNNING, id="an evaluation that runs"),
    pytest.param(EDITED, measured(moving=False), Reason.EVALUATION_STOPPED, id="an evaluation that ended in a fault"),
    pytest.param(EDITED, Evaluation(moving=False), Reason.EVALUATION_STOPPED, id="an evaluation that is suspended"),
    pytest.param(EDITED, FAILED, Reason.EVALUATION_FAILED, id="failed"),
    pytest.param(EDITED, UNCLEAR, Reason.EVALUATION_INCONCLUSIVE, id="inconclusive"),
    pytest.param(
        EDITED, measured(Verdict.PASSED, OTHER), Reason.OTHER_VARIANT_EVALUATED, id="passed for another variant"
    ),
    pytest.param(EDITED, measured(Verdict.PASSED, OLD), Reason.OTHER_VARIANT_EVALUATED, id="passed for what runs"),
    pytest.param(EDITED, measured(None, OTHER), Reason.OTHER_VARIANT_EVALUATED, id="another variant is measured now"),
    pytest.param(
        EDITED, measured(Verdict.PASSED, ""), Reason.OTHER_VARIANT_EVALUATED, id="passed for nobody knows what"
    ),
    pytest.param(UNTOLD, Missing.ABSENT, Reason.NO_EVALUATION, id="what runs cannot be told"),
    pytest.param(UNTOLD, FAILED, Reason.EVALUATION_FAILED, id="what runs cannot be told, and this failed"),
]

LET_THROUGH = [
    pytest.param(EDITED, PASSED, Reason.EVALUATION_PASSED, id="passed"),
    pytest.param(UNTOLD, PASSED, Reason.EVALUATION_PASSED, id="passed, whatever runs"),
    pytest.param(
        UNEDITED, measured(Verdict.PASSED, OLD), Reason.EVALUATION_PASSED, id="the variant that passed runs by now"
    ),
    pytest.param(UNEDITED, Missing.ABSENT, Reason.VARIANT_RUNS, id="its evaluation was deleted"),
    pytest.param(UNEDITED, Missing.UNREADABLE, Reason.VARIANT_RUNS, id="unedited, and nothing can be read"),
    pytest.param(UNEDITED, measured(Verdict.FAILED, NEW), Reason.VARIANT_RUNS, id="back to what runs"),
    pytest.param(
        UNEDITED, measured(Verdict.INCONCLUSIVE, OLD), Reason.VARIANT_RUNS, id="what runs, and none can tell more"
    ),
    pytest.param(
        UNEDITED, measured(Verdict.FAILED, OLD), Reason.RUNNING_VARIANT_FAILED, id="what runs failed afterwards"
    ),
    pytest.param(FIRST, Missing.ABSENT, Reason.FIRST_VARIANT, id="nothing runs yet"),
    pytest.param(FIRST, FAILED, Reason.FIRST_VARIANT, id="nothing runs yet, and this failed elsewhere"),
    pytest.param(FIRST, PASSED, Reason.EVALUATION_PASSED, id="nothing runs yet, and this passed"),
    pytest.param(BACK, Missing.ABSENT, Reason.VARIANT_RAN_BEFORE, id="back to what ran before"),
    pytest.param(BACK, FAILED, Reason.VARIANT_RAN_BEFORE, id="back to what ran before, which failed since"),
]


@pytest.mark.parametrize(("variants", "found", "reason"), HELD)
def test_a_variant_is_held(variants, found, reason):
    decided = accept(variants, found)
    assert (decided.held, decided.reason) == (True, reason)


@pytest.mark.parametrize(("variants", "found", "reason"), LET_THROUGH)
def test_a_variant_is_let_through(variants, found, reason):
    decided = accept(variants, found)
    assert (decided.held, decided.reason) == (False, reason)


DIGESTS = st.sampled_from([OLD, NEW, OTHER])
FOUND = st.sampled_from(Missing) | st.builds(
    Evaluation,
    variant=DIGESTS | st.just(""),
    verdict=st.none() | st.sampled_from(Verdict),
    moving=st.booleans(),
)


@given(stated=DIGESTS, running=DIGESTS, before=DIGESTS | st.just(""), found=FOUND)
def test_nothing_replaces_what_runs_but_what_passed_exactly_or_ran_before(stated, running, before, found):
    decided = accept(Variants(stated=stated, running=running, before=before), found)
    passed = isinstance(found, Evaluation) and found.variant == stated and found.verdict is Verdict.PASSED
    assert decided.held is not (stated in {running, before} or passed)


@given(running=DIGESTS, before=DIGESTS | st.just(""), found=FOUND)
def test_no_evaluation_takes_away_what_runs(running, before, found):
    assert not accept(Variants(stated=running, running=running, before=before), found).held
