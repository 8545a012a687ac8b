// An exported page: the same pages over the data that the file has with it.
import { render } from "preact";
import { useSource } from "./api/call";
import { Recorded, type RecordedPage } from "./api/recorded";
import { App } from "./app";
import { placeInFragment, studyPath } from "./router";
import "./style/theme.css";
import "./style/base.css";

const page = document.getElementById("page");
const data = document.getElementById("hpo-data")?.textContent ?? "";
if (page !== null) {
  try {
    const recorded = new Recorded(JSON.parse(data) as RecordedPage);
    useSource(recorded);
    placeInFragment(studyPath(recorded.study));
    render(<App />, page);
  } catch {
    page.textContent = "The data of this page cannot be read: the file is damaged. Run hpo export html again.";
  }
}
