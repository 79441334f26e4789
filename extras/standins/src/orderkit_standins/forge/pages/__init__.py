"""
Web pages of the embedded forge: look at repositories, files, history, changes, pull requests.

Plain HTML and one style sheet; no script, no cookie, nothing from elsewhere. A pull request can be
reviewed and merged, by the endpoints of the API; nothing else writes. A person is who the Basic
credentials say, with the rights that ``api.access`` gives them in the API too. Addresses are
Gitea's, so links made by Backstage and others work.

Not there: blame, searching inside files, highlighting, settings, releases, wiki. Files and changes
beyond the bounds in ``repository_pages`` and ``shown_commits`` are cut with a note. Names that are
no UTF-8 are shown with replacement characters and cannot be opened.
"""
