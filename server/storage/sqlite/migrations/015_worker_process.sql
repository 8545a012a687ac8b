-- Which process the worker is or was, JSON: a server that starts anew sees which of them still lives.
ALTER TABLE worker ADD COLUMN process TEXT NOT NULL DEFAULT '';
