-- The trials of earlier studies that a study starts from.
CREATE TABLE study_prior (
  study_id INTEGER NOT NULL REFERENCES study (id),
  position INTEGER NOT NULL,         -- in the study's list, from 0
  prior TEXT NOT NULL,               -- name of the earlier study
  trials TEXT NOT NULL,              -- their numbers, a JSON array
  num_skipped INTEGER NOT NULL,      -- completed trials that are no configuration of the space
  why_skipped TEXT NOT NULL,         -- of the first of those
  PRIMARY KEY (study_id, position)
) WITHOUT ROWID;
