"""What fits which GPU, and the workers: a row for each GPU, and draining."""

from browser import DESK, PHONE, Browser
from harness import wait_until


class Memory(Browser):
    """Of a study with models that hpo knows, without any worker."""

    def setUp(self):
        super().setUp()
        server = self.start_server("--study", "criteria", "--http", "127.0.0.1:0", study=None)
        self.find_page(server)

    def see(self, tab, text):
        tab.get_by_text(text).first.wait_for()

    def test_a_gpu_that_nobody_has_is_asked_for(self):
        tab = self.open("/studies/criteria/memory?gpu=12&gpu=80&look=12")
        self.see(tab, "What fits a GPU of 12 GiB")
        self.see(tab, "What to cut for 12 GiB")
        self.see(tab, "configurations")
        table = tab.get_by_role("region", name="What fits each GPU")
        self.assertEqual(table.get_by_role("row").count(), 3)
        # 20 GiB is on no list.
        tab.get_by_label("Other memory, in GiB").fill("twenty")
        tab.get_by_role("button", name="Add", exact=True).click()
        self.see(tab, "Expected the memory of a GPU")
        tab.get_by_label("Other memory, in GiB").fill("20")
        tab.get_by_role("button", name="Add", exact=True).click()
        wait_until(lambda: table.get_by_role("row").count() == 4, "the third GPU")

    def test_the_frontier_has_a_table_and_other_axes(self):
        tab = self.open("/studies/criteria/memory?gpu=12&look=12")
        card = tab.locator(".card", has=tab.get_by_role("heading", name="Out-of-memory frontier"))
        card.locator("canvas, svg").first.wait_for()
        across = card.get_by_label("Across")
        upwards = card.get_by_label("Upwards")
        before = across.input_value(), upwards.input_value()
        self.assertNotEqual(*before)
        across.select_option(before[1])  # the axes change places
        wait_until(lambda: (across.input_value(), upwards.input_value()) == before[::-1], "the axes to change places")

    def test_themes_widths_and_axe(self):
        for scheme, size in (("light", DESK), ("dark", DESK), ("light", PHONE)):
            with self.subTest(scheme=scheme, width=size["width"]):
                tab = self.open("/studies/criteria/memory?gpu=12&look=12", color_scheme=scheme, viewport=size)
                self.see(tab, "What fits a GPU of 12 GiB")
                self.assert_fits(tab, "the memory page")
                self.assert_accessible(tab, "the memory page")


class Unknown(Browser):
    def test_a_study_of_which_nothing_is_known_says_why(self):
        self.serve()
        tab = self.open("/studies/toy/memory")
        card = tab.locator(".card", has=tab.get_by_role("heading", name="What fits", exact=True))
        card.get_by_text("memory").first.wait_for()
        self.assertEqual(tab.get_by_role("alert").count(), 0, "that is no error")


class Fleet(Browser):
    STUDY = Browser.STUDY.replace("trials: 6", "trials: 1000")

    def setUp(self):
        super().setUp()
        self.serve()

    def see(self, tab, text):
        tab.get_by_text(text).first.wait_for()

    def test_a_fleet_without_workers_says_what_to_do(self):
        self.see(self.open("/fleet"), "No worker has connected since the server started")

    def test_a_worker_is_drained_and_resumed(self):
        self.start_worker("w0", environment={"HPO_FAKE_PACE_MS": "300"})
        self.start_worker("w1", environment={"HPO_FAKE_PACE_MS": "300"})
        tab = self.open("/fleet")
        table = tab.get_by_role("region", name="Workers that are alive")
        wait_until(lambda: table.get_by_role("row").count() == 3, "two workers")
        tab.get_by_role("button", name="Drain w0").click()
        dialog = tab.get_by_role("dialog")
        dialog.get_by_text("The worker saves its trial now").click()
        dialog.get_by_role("button", name="Drain the worker").click()
        self.see(tab, "w0 will get no more trials.")
        wait_until(lambda: not self.processes[1].alive(), "the worker's end")
        tab.get_by_text("1 worker has gone").click()
        tab.get_by_role("button", name="Resume w0").click()
        self.see(tab, "w0 may get trials again.")

    def test_rows_are_found_by_name_and_state(self):
        self.start_worker("w0", environment={"HPO_FAKE_PACE_MS": "300"})
        self.start_worker("other", environment={"HPO_FAKE_PACE_MS": "300"})
        tab = self.open("/fleet?find=oth")
        table = tab.get_by_role("region", name="Workers that are alive")
        wait_until(lambda: table.get_by_role("row").count() == 2, "one worker")
        table.get_by_text("other").first.wait_for()
        # The trial that it runs is a link to its page.
        table.get_by_role("link").first.click()
        tab.get_by_role("heading", name="Trial 0", exact=True).wait_for()

    def test_themes_widths_and_axe(self):
        self.start_worker("w0", environment={"HPO_FAKE_PACE_MS": "300"})
        for scheme, size in (("light", DESK), ("dark", DESK), ("light", PHONE)):
            with self.subTest(scheme=scheme, width=size["width"]):
                tab = self.open("/fleet", color_scheme=scheme, viewport=size)
                self.see(tab, "w0")
                self.assert_fits(tab, "the fleet")
                self.assert_accessible(tab, "the fleet")
