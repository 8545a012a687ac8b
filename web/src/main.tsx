import { render } from "preact";
import { App, askForPage } from "./app";
import { readSession } from "./api/session";
import "./style/theme.css";
import "./style/base.css";

void readSession();
askForPage();
const page = document.getElementById("page");
if (page !== null) render(<App />, page);
