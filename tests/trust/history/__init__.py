"""How often changes are claimed in histories where nothing changed, and how soon real ones are found."""
