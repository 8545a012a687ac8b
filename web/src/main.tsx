import { render } from "preact";
import { App, askForPage } from "./app";
import { followSession } from "./api/session";
import "./style/theme.css";
import "./style/base.css";

followSession();
askForPage();
const page = document.getElementById("page");
if (page !== null) render(<App />, page);
