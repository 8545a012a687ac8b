-- How many measurements the attempt has: counting them for each report takes longer the more there are.
ALTER TABLE attempt ADD COLUMN measured INTEGER NOT NULL DEFAULT 0;
UPDATE attempt SET measured =
  (SELECT COUNT(*) FROM measurement AS m
   WHERE m.study_id = attempt.study_id AND m.number = attempt.number AND m.attempt = attempt.attempt);
