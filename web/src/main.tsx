import { render } from "preact";
import { App } from "./app";
import { readSession } from "./api/session";
import "./style/theme.css";
import "./style/base.css";

void readSession();
const page = document.getElementById("page");
if (page !== null) render(<App />, page);
