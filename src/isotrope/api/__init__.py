"""Every public verb: each is a short function that joins rooms, and a command of the same name prints what it returns.

A room is imported inside the verb that needs it. A call that cannot work is therefore refused before torch is imported
wherever names and files alone say so: a missing data file, an unknown suite, an output in the way.
"""

from __future__ import annotations

from isotrope.api.data_verbs import check as check
from isotrope.api.data_verbs import leaks as leaks
from isotrope.api.data_verbs import links as links
from isotrope.api.data_verbs import paraphrase as paraphrase
from isotrope.api.encoder_verbs import complete as complete
from isotrope.api.encoder_verbs import distil as distil
from isotrope.api.encoder_verbs import export as export
from isotrope.api.encoder_verbs import fit_space as fit_space
from isotrope.api.encoder_verbs import load as load
from isotrope.api.encoder_verbs import push as push
from isotrope.api.judging_verbs import doctor as doctor
from isotrope.api.judging_verbs import evaluate as evaluate
from isotrope.api.judging_verbs import report as report
from isotrope.api.search_verbs import index as index
from isotrope.api.search_verbs import mine as mine
from isotrope.api.search_verbs import open_index as open_index
from isotrope.api.search_verbs import search as search
from isotrope.api.training_verbs import compare as compare
from isotrope.api.training_verbs import methods as methods
from isotrope.api.training_verbs import pretrain as pretrain
from isotrope.api.training_verbs import train as train
from isotrope.api.using_verbs import encode as encode
from isotrope.api.using_verbs import predict as predict
from isotrope.api.using_verbs import serve as serve
