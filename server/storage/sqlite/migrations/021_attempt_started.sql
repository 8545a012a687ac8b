-- The latest attempts of a study, for its timeline, without a look at all others.
CREATE INDEX attempt_started ON attempt (study_id, started, number, attempt)
  WHERE worker <> 'imported';
