-- The last lines that an attempt's program wrote. Rows of their own: lists of trials read all of an
-- attempt's row.
CREATE TABLE attempt_log (
  study_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  tail TEXT NOT NULL,
  PRIMARY KEY (study_id, number, attempt),
  FOREIGN KEY (study_id, number, attempt) REFERENCES attempt (study_id, number, attempt)
);
