ALTER TABLE labels ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
CREATE TABLE comments (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  issue_id INTEGER NOT NULL REFERENCES issues(id) ON DELETE CASCADE,
  poster_id INTEGER NOT NULL REFERENCES accounts(id),
  body TEXT NOT NULL,
  created TEXT NOT NULL,
  updated TEXT NOT NULL
);
CREATE INDEX comments_of_issue ON comments (issue_id);
