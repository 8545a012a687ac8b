-- What people want of a study (RUN, PAUSE, STOP), and from which trial on its failures count.
ALTER TABLE study ADD COLUMN study_order TEXT NOT NULL DEFAULT 'RUN';
ALTER TABLE study ADD COLUMN failures_from INTEGER NOT NULL DEFAULT 0;
-- Why the attempt's worker was ordered to end the trial as CANCELLED; NULL: it was not.
ALTER TABLE attempt ADD COLUMN stop_order TEXT;
-- How long workers have held the trial, by a clock that does not jump. Until now: by the wall clock.
ALTER TABLE trial ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
UPDATE trial SET held = (
  SELECT coalesce(sum(max(0, ended - started)), 0) FROM attempt
  WHERE attempt.study_id = trial.study_id AND attempt.number = trial.number AND ended IS NOT NULL)
WHERE state IN ('QUEUED', 'RUNNING');
