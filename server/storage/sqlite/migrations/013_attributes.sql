-- What people and programs note of a study (number -1) and of its trials.
CREATE TABLE attribute (
  study_id INTEGER NOT NULL REFERENCES study (id),
  number INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,               -- JSON
  PRIMARY KEY (study_id, number, key)
) WITHOUT ROWID;
