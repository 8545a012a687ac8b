-- Memory at the stages of an attempt, as its trainer told it.
CREATE TABLE memory_record (
  study_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  sequence INTEGER NOT NULL,         -- among the attempt's, from 0
  record TEXT NOT NULL,              -- canonical JSON
  PRIMARY KEY (study_id, number, attempt, sequence),
  FOREIGN KEY (study_id, number, attempt) REFERENCES attempt (study_id, number, attempt)
) WITHOUT ROWID;
