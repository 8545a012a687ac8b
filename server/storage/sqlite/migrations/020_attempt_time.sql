-- How long a study's attempts took that have ended, by how they ended: kept with their rows, so that
-- nobody has to go over all of them. Trials that another
-- program ran (worker 'imported') are not counted.
CREATE TABLE attempt_time (
  study_id INTEGER NOT NULL,
  state TEXT NOT NULL,               -- of the attempt
  outcome TEXT NOT NULL,             -- its kind; empty: none
  duration INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  PRIMARY KEY (study_id, state, outcome)
) WITHOUT ROWID;

INSERT INTO attempt_time
SELECT study_id, state, COALESCE(json_extract(outcome, '$.kind'), ''),
       SUM(MAX(0, ended - started)), COUNT(*)
FROM attempt WHERE ended IS NOT NULL AND worker <> 'imported' GROUP BY 1, 2, 3;

CREATE TRIGGER attempt_time_inserted AFTER INSERT ON attempt
WHEN NEW.ended IS NOT NULL AND NEW.worker <> 'imported'
BEGIN
  INSERT INTO attempt_time
  VALUES (NEW.study_id, NEW.state, COALESCE(json_extract(NEW.outcome, '$.kind'), ''),
          MAX(0, NEW.ended - NEW.started), 1)
  ON CONFLICT DO UPDATE SET duration = duration + excluded.duration, attempts = attempts + 1;
END;

-- A late result ends an attempt a second time.
CREATE TRIGGER attempt_time_taken_back AFTER UPDATE OF state, outcome, ended, started ON attempt
WHEN OLD.ended IS NOT NULL AND OLD.worker <> 'imported'
BEGIN
  UPDATE attempt_time
  SET duration = duration - MAX(0, OLD.ended - OLD.started), attempts = attempts - 1
  WHERE study_id = OLD.study_id AND state = OLD.state AND
        outcome = COALESCE(json_extract(OLD.outcome, '$.kind'), '');
END;

CREATE TRIGGER attempt_time_updated AFTER UPDATE OF state, outcome, ended, started ON attempt
WHEN NEW.ended IS NOT NULL AND NEW.worker <> 'imported'
BEGIN
  INSERT INTO attempt_time
  VALUES (NEW.study_id, NEW.state, COALESCE(json_extract(NEW.outcome, '$.kind'), ''),
          MAX(0, NEW.ended - NEW.started), 1)
  ON CONFLICT DO UPDATE SET duration = duration + excluded.duration, attempts = attempts + 1;
END;

CREATE TRIGGER attempt_time_forgotten AFTER DELETE ON study
BEGIN
  DELETE FROM attempt_time WHERE study_id = OLD.id;
END;

-- Counts and the best trials of a study without its rows: of 100,000 trials they are asked for by
-- each viewer of the page.
CREATE INDEX trial_counts ON trial
  (study_id, state, prune_reason, demonstration, budgeted, violation > 0, oom_met);
CREATE INDEX trial_lowest ON trial (study_id, violation, value, number)
  WHERE state = 'COMPLETED' AND value IS NOT NULL AND demonstration = 0;
CREATE INDEX trial_highest ON trial (study_id, violation, value DESC, number)
  WHERE state = 'COMPLETED' AND value IS NOT NULL AND demonstration = 0;
