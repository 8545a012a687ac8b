-- Workers that get no more trials, by name, until somebody resumes them.
CREATE TABLE drained_worker (
  name TEXT PRIMARY KEY,
  since INTEGER NOT NULL             -- microseconds since 1970
) WITHOUT ROWID;
