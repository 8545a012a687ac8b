-- Whether the attempt's worker was ordered to save and to give the trial back.
ALTER TABLE attempt ADD COLUMN preempted INTEGER NOT NULL DEFAULT 0;
