"""What may be deleted, decided without a cluster."""

from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain.stored_items import KINDS, StoredItem, StoreReport, purge_day, unneeded

NOW = 1_800_000_000.0
OLD = NOW - 10 * 86400


def kept(kind, name, written=OLD):
    return StoredItem(kind, name, size=10, files=1, written=written)


def test_what_no_unfinished_run_speaks_of_is_unneeded():
    pack, other = kept("packs", "images-0123456789ab"), kept("packs", "images-ffff56789abc")
    runs = [StoreReport("cats-7f3a", '{"datasets": [{"pack": "images-0123456789ab"}]}')]

    assert unneeded([pack, other], runs, NOW) == (other,)


def test_environments_and_programs_are_known_by_their_digest():
    things = [kept("envs", "abcd1234.txt"), kept("envs", "abcd1234.json"), kept("node", "77.pyz")]
    runs = [
        StoreReport("cats-7f3a", "pip install -r $S/envs/abcd1234.txt\nexec python3 $S/node/77.pyz")
    ]

    assert unneeded(things, runs, NOW) == ()


def test_a_run_whose_plan_cannot_be_read_keeps_everything():
    assert unneeded([kept("packs", "images-01")], [StoreReport("cats-7f3a", "")], NOW) == ()


def test_a_transfer_by_another_program_may_pause_for_days():
    assert unneeded([kept("arriving", "images-01", NOW - 3 * 86400)], [], NOW) == ()
    assert len(unneeded([kept("arriving", "images-01")], [], NOW)) == 1


def test_runs_are_never_deleted():
    assert unneeded([kept("runs", "cats-7f3a")], [], NOW) == ()


def test_what_was_written_today_stays():
    assert unneeded([kept("packs", "images-01", NOW - 60)], [], NOW) == ()


def test_what_was_left_half_written_goes_after_a_day():
    things = [kept("packs", "a.partial"), kept("packs", "b.partial", NOW - 60)]

    assert unneeded(things, [], NOW) == (things[0],)


@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.text("abc0123-", min_size=1, max_size=4))),
    st.lists(st.text("abc0123- ", min_size=1)),
)
def test_nothing_that_an_unfinished_run_speaks_of_ever_goes(things, texts):
    runs = [StoreReport(str(number), text) for number, text in enumerate(texts)]

    for each in unneeded([kept(*thing) for thing in things], runs, NOW):
        assert each.kind != "runs"
        assert not any(each.name in text for text in texts)


def test_purge_days_are_counted_from_when_it_was_written():
    assert purge_day("60 d by access and change, on the 15th", 0.0) == "1970-03-02"
    assert purge_day("8 weeks", 0.0) == "1970-02-26"
    assert purge_day("2 months", 0.0) == "1970-03-02"
    assert purge_day("never", 0.0) == ""


def test_the_use_of_one_file_of_an_environment_is_the_use_of_all():
    things = [kept("envs", "abcd1234.tar"), kept("envs", "abcd1234.json", NOW - 60)]

    assert unneeded(things, [], NOW) == ()
