"""The card that notebooks show for a study: true, drawn anew, and safe whatever the study's texts are."""

import html.parser

import hpo
from hpo import _wire
from hpo.notebook.card import render

HOSTILE = '<script>alert(1)</script>"\'&'


class Parts(html.parser.HTMLParser):
    """The tags and the texts of a card; fails on tags that are not closed in order."""

    def __init__(self, card):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(card)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_it_is_drawn_anew_each_time(tmp_path):
    with hpo.Study("mine", {"x": hpo.uniform(0, 1)}, trials=6, storage=tmp_path) as study:
        before = Parts(study._repr_html_())
        assert "none yet" in before.texts and "svg" not in before.tags
        for _ in range(5):
            trial = study.ask()
            study.tell(trial, trial["x"])
        study.tell(study.ask(), ValueError("broken"))
        after = Parts(study._repr_html_())
        best = study.best
        assert f"value {best.value:.6g}, trial {best.number}" in after.texts
        assert "5 completed, 1 failed of 6" in after.texts
        assert "finished" in after.texts
        assert after.tags.count("circle") == 5 and after.tags.count("path") == 1


def test_texts_of_a_study_are_texts(tmp_path):
    with hpo.Study("mine", {"x": hpo.uniform(0, 1)}, metric=HOSTILE, trials=2, storage=tmp_path) as study:
        trial = study.ask()
        study.tell(trial, {HOSTILE: trial["x"]})
        shown = Parts(study._repr_html_())
        assert "script" not in shown.tags
        assert any(text.startswith(HOSTILE + " ") for text in shown.texts)


def test_texts_that_no_rule_limits_are_texts():
    state = _wire.message("Study")(name=HOSTILE, failure=HOSTILE, waiting_for=HOSTILE)
    shown = Parts(render(state, _wire.message("GetHistoryResponse")()))
    assert "script" not in shown.tags
    assert shown.texts.count(HOSTILE) == 3


def test_without_a_server_the_study_has_its_text(tmp_path):
    with hpo.Study("mine", {"x": hpo.uniform(0, 1)}, trials=1, storage=tmp_path) as study:
        pass
    assert study._repr_html_() is None
    assert "mine" in repr(study)


